"""The files of the container image and of the workflow. `make container` runs the image's steps."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from infra.clients.cli import main as kho
from infra.prepare import ROOT
from tests.suites.container.dockerfile import FOLDER, Image

IMAGE = Image()
SERVICE = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["server"]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
GUIDE = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
COMPOSE = re.compile(r"docker compose -f (\S+) (\w+)(?: -T)? (\S+)")
MAKE = re.compile(r"^(?:RUN )?make (?:-C \S+ )?([\w-]+)", re.MULTILINE)


def test_image_serves_as_a_user_without_privileges_and_requires_keys() -> None:
    assert IMAGE.user == "10001:10001"
    assert IMAGE.environment["KHO_AUTH"] == "required"
    assert IMAGE.volume == IMAGE.environment["KHO_DATA"] == IMAGE.folder
    assert IMAGE.ports == [int(IMAGE.environment[name]) for name in ("KHO_PORT", "KHO_MQTT_PORT")]


def test_compose_runs_the_image_read_only() -> None:
    assert SERVICE["read_only"] is True
    assert SERVICE["user"] == IMAGE.user
    assert SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert [volume.split(":")[1] for volume in SERVICE["volumes"]] == [IMAGE.volume]
    assert [int(port.rsplit(":", 1)[1]) for port in SERVICE["ports"]] == IMAGE.ports
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])
    build = FOLDER / SERVICE["build"]["context"]
    assert build.resolve() == ROOT
    assert (build / SERVICE["build"]["dockerfile"]).samefile(FOLDER / "Dockerfile")


def test_compose_commands_name_the_file_and_its_service() -> None:
    texts = (GUIDE, (FOLDER / "compose.yaml").read_text(), (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    for text in texts:
        found = COMPOSE.findall(text)
        assert len(found) == 2
        for file, command, word in found:
            assert (ROOT / file).samefile(FOLDER / "compose.yaml")
            assert (command, word) in (("up", "--build"), ("exec", "server"))


@pytest.mark.parametrize("words", [IMAGE.command[1:], SERVICE["command"]])
def test_commands_of_the_container_are_ours(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_AUTH", IMAGE.environment["KHO_AUTH"])
    called, bound, ignored = kho.app.parse_args(words, exit_on_error=False, print_error=False)
    assert (called.__name__, ignored) == ("serve", {})
    assert bound.arguments["auth"] == "required"


def test_image_copies_what_exists() -> None:
    for stage, sources, _ in IMAGE.copies:
        assert stage or all((ROOT / source).is_file() for source in sources)


def test_actions_and_base_images_are_pinned_by_digest() -> None:
    """A tag can be moved to other code. The comment names the version, which Dependabot keeps true."""
    uses = re.findall(r"uses: (.+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert uses
    assert [each for each in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    bases = re.findall(r"^FROM (\S+)", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    assert len(set(bases)) == 1
    assert re.fullmatch(r"debian:trixie-slim@sha256:[0-9a-f]{64}", bases[0])


def test_workflow_and_dockerfile_run_what_exists() -> None:
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    text = "\n".join(step.get("run", "") for step in steps) + (FOLDER / "Dockerfile").read_text()
    text += (ROOT / ".ci" / "run").read_text()
    assert set(MAKE.findall(text)) <= TARGETS
    assert "infra/deploy/container/compose.yaml" in text
    assert {".ci/run"} <= {step.get("run") for step in steps}
    assert set(WORKFLOW["jobs"]["release"]["needs"]) == set(WORKFLOW["jobs"]) - {"release"}
