"""`kho doctor` reports problems and remedies, locally and in a deployed stack."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.data_folder import read_server_info
from shared.aws.dead_letters import CRASHED, FILE_NAME, DeadLetter
from tests.helpers.api_client import run_kho
from tests.helpers.aws_stack import ENVIRONMENT, running_aws_stack
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from pathlib import Path


def run_doctor(*options: str, environment: dict[str, str] | None = None) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code of the doctor and its findings by subject."""
    done = run_kho("doctor", "--json", *options, environment=environment)
    assert "Traceback" not in done.stderr
    report = json.loads(done.stdout)
    assert report["healthy"] is (done.returncode == 0)
    return done.returncode, {each["subject"]: each for each in report["findings"]}


def nobody_listens() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_new_machine_is_healthy_and_gets_first_steps(tmp_path: Path) -> None:
    code, findings = run_doctor("--data", str(tmp_path))
    assert code == 0
    assert findings["Server"]["advice"] == "Start it: kho serve"
    assert findings["Keys"]["state"] == "note"
    assert {findings[name]["state"] for name in ("Embedding", "Qdrant", "kho-MemoryTable", "Dead letters")} == {"good"}


def test_running_server_is_queried_without_taking_its_lock(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data") as server:
        code, findings = run_doctor("--data", str(server.data))
        running = read_server_info(server.data)
        assert running
        assert code == 0
        assert findings["HTTP"]["message"].startswith(running["address"])
        assert findings["Devices"]["message"].startswith(running["mqtt_url"])
        assert {findings[name]["state"] for name in ("HTTP", "Clock", "Devices", "Qdrant")} == {"good"}


def test_problems_are_reported_with_advice(tmp_path: Path) -> None:
    unreachable = nobody_listens()
    settings = {
        "KHO_QDRANT_URL": unreachable,
        "KHO_MODEL_PROVIDER": "openai",
        "KHO_MODEL": "any",
        "KHO_MODEL_URL": unreachable,
    }
    code, findings = run_doctor("--data", str(tmp_path), environment=settings)
    assert code == 1
    assert findings["Qdrant"]["state"] == findings["Model"]["state"] == "wrong"
    assert "KHO_QDRANT_URL" in findings["Qdrant"]["advice"]


def test_what_workers_gave_up_is_reported(tmp_path: Path) -> None:
    """An operator of one machine sees dead letters, with the worker and the reason."""
    letters = [DeadLetter(str(number), "workers/index_documents", "INTERNAL_ERROR", "") for number in (1, 2)]
    letters.append(DeadLetter("1", "workers/ingest", CRASHED, ""))
    (tmp_path / FILE_NAME).write_text("".join(f"{json.dumps(asdict(each))}\n" for each in letters))
    code, findings = run_doctor("--data", str(tmp_path))
    assert (code, findings["Dead letters"]["state"]) == (1, "wrong")
    assert findings["Dead letters"]["message"] == (
        "Workers gave up: 2 of index_documents (INTERNAL_ERROR), 1 of ingest (CRASHED)."
    )
    assert FILE_NAME in findings["Dead letters"]["advice"]


def test_text_output_has_one_line_per_check(tmp_path: Path) -> None:
    lines = run_kho("doctor", "--data", str(tmp_path)).stdout.splitlines()
    assert any(line.startswith("✓ kho-MemoryTable: It is active, with format 1.") for line in lines)
    assert "    Start it: kho serve" in lines


@pytest.mark.parametrize("letters", [0, 2])
def test_deployed_stack_is_checked_with_operator_credentials(letters: int) -> None:
    with running_aws_stack("kho", {"KHO_MEMORY_TABLE": "kho-MemoryTable"}, dead_letters=letters) as url:
        environment = ENVIRONMENT | {"AWS_ENDPOINT_URL": url}
        code, findings = run_doctor("--stack", "kho", environment=environment)
    assert code == 1
    assert findings["Stack"]["message"] == "kho is CREATE_COMPLETE."
    assert findings["kho-MemoryTable"]["message"] == "The table has no point-in-time recovery."
    assert findings["Dead letters"]["state"] == ("wrong" if letters else "good")
    assert findings["Worker purge_messages"]["message"] == "Its event source mapping is not enabled (there is none)."
    assert findings["Qdrant"]["advice"] == "Deploy with the parameter QdrantUrl."


def test_missing_stack_is_reported_in_one_line() -> None:
    with running_aws_stack("kho", {}) as url:
        done = run_kho("doctor", "--stack", "other", environment=ENVIRONMENT | {"AWS_ENDPOINT_URL": url})
    assert done.returncode == 1
    assert "There is no stack 'other' of Kho" in done.stderr
