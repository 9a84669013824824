"""Updates of stock boards from a file of this machine, as the boards' firmware does it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from infra.local.iot.simulator.board_http import download
from tests.e2e.devices.test_stock_boards import claim, new_board, operator
from tests.helpers.api_client import run_kho
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers.kho_server import KhoServer

IMAGE = os.urandom(300_000)


@pytest.fixture(scope="module")
def image(guarded: KhoServer) -> str:
    """Put an image into the folder of the server's files, and return its path."""
    folder = guarded.data / "firmware"
    folder.mkdir(exist_ok=True)
    (folder / "xiaozhi-2.5.0.bin").write_bytes(IMAGE)
    return "/firmware/xiaozhi-2.5.0.bin"


def test_board_installs_a_file_of_this_machine_and_checks_in_again(
    guarded: KhoServer, image: str, tmp_path: Path
) -> None:
    tenant = f"home-{uuid4().hex}"
    lines: list[str] = []
    board = new_board(guarded, tmp_path, trace=lines.append)
    claim(guarded, board, tenant)
    client = operator(guarded, tenant)
    client.result("device-server/firmware/set", board=board.board, version="2.5.0", url=image)
    assert board.start()
    assert board.version == "2.5.0"
    assert [line.split()[1] for line in lines if line.startswith(("> POST", "> GET"))] == [
        "POST",
        "POST",
        "GET",
        "POST",
    ]
    assert client.result("device-server/firmware/list")["firmware"][0]["failed_devices"] == []


def test_board_that_fails_three_times_goes_on_with_its_firmware(guarded: KhoServer, image: str, tmp_path: Path) -> None:
    tenant = f"home-{uuid4().hex}"
    board = new_board(guarded, tmp_path)
    device_id = claim(guarded, board, tenant)
    client = operator(guarded, tenant)
    (guarded.data / "firmware" / "lost.bin").write_bytes(b"x")
    client.result("device-server/firmware/set", board=board.board, version="2.5.0", url="/firmware/lost.bin")
    (guarded.data / "firmware" / "lost.bin").unlink()
    for _ in range(3):
        board.check_in()
        assert board.firmware_offer
        assert not board.install()
    assert board.start()
    assert (board.version, board.firmware_offer) == ("2.4.2", None)
    assert client.result("device-server/firmware/list")["firmware"][0]["failed_devices"] == [device_id]


def test_file_is_served_without_a_key_as_an_attachment_with_its_length(guarded: KhoServer, image: str) -> None:
    assert download(f"{guarded.address}{image}", seconds=CEILING_SECONDS, trace=lambda _line: None) == IMAGE
    response = guarded.get(image, **{"accept-encoding": "gzip"})
    assert (response.status, response.data) == (200, IMAGE)
    assert response.headers["content-length"] == str(len(IMAGE))
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == 'attachment; filename="xiaozhi-2.5.0.bin"'
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-correlation-id"]
    assert "transfer-encoding" not in response.headers
    described = guarded.http.request("HEAD", f"{guarded.address}{image}")
    assert (described.status, described.headers["content-length"], described.data) == (200, str(len(IMAGE)), b"")


@pytest.mark.parametrize("name", ["", "other.bin", "..%2fkho.log", "%2e%2e/kho.log", "../kho.log", ".hidden", "x/y"])
def test_nothing_else_is_served(name: str, guarded: KhoServer, image: str) -> None:
    (guarded.data / "firmware" / ".hidden").write_bytes(b"secret")
    response = guarded.get(image.rpartition("/")[0] + f"/{name}")
    assert response.status == 404
    assert b"secret" not in response.data


def test_other_verbs_are_refused(guarded: KhoServer, image: str) -> None:
    response = guarded.post(image, b"{}")
    assert (response.status, response.headers["allow"]) == (405, "GET")


def test_commands_set_list_and_delete(guarded: KhoServer) -> None:
    tenant, data = f"home-{uuid4().hex}", str(guarded.data)

    def run(*arguments: str) -> str:
        process = run_kho("devices", "firmware", *arguments, "--tenant", tenant, "--data", data)
        assert process.returncode == 0, process.stderr
        return process.stdout

    url = "https://files.example/x.bin"
    assert "2.4.3" in run("set", "bread-compact-wifi", "2.4.3", url)
    assert url in run("list")
    assert json.loads(run("list", "--json"))["firmware"][0]["version"] == "2.4.3"
    assert "no longer offered" in run("delete", "bread-compact-wifi")
    assert json.loads(run("list", "--json")) == {"firmware": []}


def test_links_and_what_is_no_file_are_not_served(guarded: KhoServer, image: str) -> None:
    """A link in the folder gives away nothing, neither a file elsewhere nor one of the data folder."""
    folder = guarded.data / "firmware"
    (folder / "folder.bin").mkdir()
    (folder / "link.bin").symlink_to("/etc/passwd")
    (folder / "own.bin").symlink_to(folder / "xiaozhi-2.5.0.bin")
    (folder / "secret.bin").symlink_to(guarded.data / "device-secret")
    (folder / "device.bin").symlink_to("/dev/zero")
    (folder / "broken.bin").symlink_to(folder / "missing")
    os.mkfifo(folder / "pipe.bin")
    client = operator(guarded, f"home-{uuid4().hex}")
    assert (guarded.data / "device-secret").is_file()
    for name in ("folder", "link", "own", "secret", "device", "broken", "pipe", "missing"):
        assert guarded.get(f"/firmware/{name}.bin").status == 404, name
        url = f"/firmware/{name}.bin"
        assert client.direct("device-server/firmware/set", board="kind", version="2.5.0", url=url)[0] == 400, name
    assert guarded.get(image).status == 200
