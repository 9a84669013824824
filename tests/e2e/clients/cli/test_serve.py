"""`kho serve`: start, end, durability of acknowledged writes, and output."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import urllib3

from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.program import KHO, command, start
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ADD = "memory-server/memory/add_message"
MESSAGES = sized(25, full=1_000)
GET = "memory-server/memory/get_all_messages"


def refusal(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Return the error message of `kho serve` when it fails to start."""
    done = run_kho("serve", *arguments, environment={"KHO_PORT": "0", "KHO_MQTT_PORT": "0"} | (environment or {}))
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_startup_output_shows_address_and_examples(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", production_limits=True, measured=True) as server:
        lines = server.printed().splitlines()
        assert server.address in lines[0]
        assert f"{server.address}/console/" in lines[1]
        assert str(tmp_path / "data") in lines[2]
        assert "mqtt://127.0.0.1:" in lines[3]
        curl = next(line.strip() for line in lines if "curl" in line)
        answer = json.loads(subprocess.run(curl, shell=True, capture_output=True, check=True).stdout)
        assert answer["result"]["conversation_id"].startswith("chat_")


def test_sigint_stops_cleanly_and_keeps_data(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", production_limits=True) as server:
        server.call(ADD, conversation_id="kept", role="user", content="still here")
        assert server.interrupt() == 0
        assert "Traceback" not in server.printed()
        server.start()
        assert server.call(GET, conversation_id="kept")["messages"] == [{"role": "user", "content": "still here"}]


def test_default_mqtt_port_falls_back_when_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        environment = os.environ | {"KHO_PORT": "0", "KHO_DATA": str(tmp_path / "data"), "PYTHONUNBUFFERED": "1"}

        def starts_with_another() -> bool:
            with contextlib.suppress(OSError):  # another process uses the port, and may leave it at any time
                taken.bind(("127.0.0.1", 1883))
                taken.listen()
            process = subprocess.Popen([*command(KHO), "serve"], env=environment, stdout=subprocess.PIPE, text=True)
            try:
                assert process.stdout
                message = next(line for line in process.stdout if "Devices connect to" in line)
                assert "mqtt://127.0.0.1:" in message
                return ":1883" not in message
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=CEILING_SECONDS)

        until(starts_with_another)


def test_sigterm_stops_cleanly(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", production_limits=True) as server:
        server.call(ADD, conversation_id="kept", role="user", content="x")
        server.process.terminate()
        assert server.process.wait(CEILING_SECONDS) == 0
        assert server.printed().splitlines()[-1] == "Ended."
        assert not (tmp_path / "data" / "serving.json").exists()


def test_aws_configuration_does_not_prevent_startup(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("this is [no configuration")
    environment = {
        "AWS_PROFILE": "missing",
        "AWS_CONFIG_FILE": str(broken),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    with KhoServer(tmp_path / "data", environment=environment) as server:
        assert server.call(ADD, conversation_id="x", role="user", content="x")["status"] == "success"


@pytest.mark.parametrize("endpoint", ["nonsense", "http://127.0.0.1:9"])
def test_unreachable_aws_endpoint_is_reported(tmp_path: Path, endpoint: str) -> None:
    assert endpoint in refusal("--data", str(tmp_path), "--aws-endpoint", endpoint)


@pytest.mark.parametrize("url", ["ftp://qdrant", "http://qdrant.example:6333"])
def test_insecure_qdrant_url_is_reported(tmp_path: Path, url: str) -> None:
    assert f"KHO_QDRANT_URL is '{url}'" in refusal("--data", str(tmp_path), "--qdrant-url", url)


def test_invalid_port_is_reported(tmp_path: Path) -> None:
    assert "99999 is not a port" in refusal("--data", str(tmp_path), "--port", "99999")


@pytest.mark.parametrize("option", ["--port", "--mqtt-port"])
def test_port_in_use_is_reported(tmp_path: Path, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refusal("--data", str(tmp_path), option, str(port))
        assert f"Port {port} is taken" in message
        assert f"with {option} (KHO_" in message


def test_data_folder_in_use_is_reported(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", production_limits=True):
        assert "another kho serve is using" in refusal("--data", str(tmp_path / "data"))


def is_healthy(address: str) -> bool:
    try:
        return urllib3.request("GET", f"{address}/health", timeout=CEILING_SECONDS, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def test_options_are_read_from_environment_variables(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"KHO_PORT": str(port), "KHO_MQTT_PORT": "0", "KHO_DATA": str(tmp_path / "from-environment")}
    process = start(KHO, "serve", env=os.environ | environment, stdout=subprocess.DEVNULL)
    try:
        until((tmp_path / "from-environment" / "serving.json").exists)
        until(lambda: is_healthy(f"http://127.0.0.1:{port}"))
        assert (tmp_path / "from-environment" / "dynamodb.sqlite").exists()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(CEILING_SECONDS) == 0


def test_open_server_binds_only_loopback(tmp_path: Path) -> None:
    assert "--auth required" in refusal("--data", str(tmp_path), "--host", "0.0.0.0")


@pytest.mark.parametrize(("name", "value"), [("KEEP_RECENT_MESSAGES", "six"), ("AUTO_SUMMARY", "perhaps")])
def test_invalid_setting_is_reported(tmp_path: Path, name: str, value: str) -> None:
    message = refusal("--data", str(tmp_path), environment={name: value})
    assert name in message
    assert value in message


def test_settings_that_cannot_work_are_reported(tmp_path: Path) -> None:
    assert "AUTO_SUMMARY" in refusal("--data", str(tmp_path), environment={"AUTO_SUMMARY": "true"})
    assert "KHO_ROOT" in refusal("--data", str(tmp_path), environment={"KHO_ROOT": "/nope"})
    assert "KHO_CORS_ORIGINS" in refusal("--data", str(tmp_path), "--cors-origins", "*")


def test_incomplete_model_setting_is_reported(tmp_path: Path) -> None:
    assert "KHO_MODEL must" in refusal("--data", str(tmp_path), environment={"KHO_MODEL_PROVIDER": "bedrock"})
    half = {"KHO_MODEL_PROVIDER": "openai", "KHO_MODEL": "x", "KHO_MODEL_URL": "nowhere"}
    assert "KHO_MODEL_URL must" in refusal("--data", str(tmp_path), environment=half)


def test_settings_reach_the_functions(tmp_path: Path) -> None:
    environment = {"KEEP_RECENT_MESSAGES": "2", "COMPRESS_AFTER_SUMMARY": "false"}
    with KhoServer(tmp_path / "data", environment=environment) as server:
        for number in range(5):
            server.call(ADD, conversation_id="set", role="user", content=str(number))
        server.call("memory-server/memory/set_summary", conversation_id="set", summary="all")
        recent = server.call("memory-server/memory/get_context", conversation_id="set", max_messages=5)["messages"]
        old = server.call("memory-server/memory/get_old_messages", conversation_id="set")["messages"]
        assert ([each["content"] for each in recent], [each["content"] for each in old]) == (
            ["3", "4"],
            ["0", "1", "2"],
        )


@pytest.mark.stress
def test_sixteen_concurrent_clients(server: KhoServer, record_property: Callable[[str, object], None]) -> None:
    """Of the messages of sixteen clients to one conversation, none is lost, doubled or out of its client's order."""

    def write(client: int) -> None:
        for number in range(MESSAGES):
            server.call(ADD, conversation_id="sixteen", role="user", content=f"{client}:{number}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    contents = [each["content"] for each in server.call(GET, conversation_id="sixteen")["messages"]]
    assert len(contents) == len(set(contents)) == 16 * MESSAGES
    for client in range(16):
        own = [content for content in contents if content.startswith(f"{client}:")]
        assert own == [f"{client}:{number}" for number in range(MESSAGES)]
    record_property("load", f"16 clients with {MESSAGES} messages each")
    record_property("outcome", f"all {len(contents):,} messages once, each client's in order")


def test_stream_purges_a_cleared_conversation(tmp_path: Path) -> None:
    from infra.local.data_folder import read_server_info
    from infra.local.environment import prepare
    from infra.local.template import load
    from shared.migrations.formats import FORMAT_KEY
    from tests.helpers.dynamodb import boto3_client

    prepare(load(), tmp_path, auth="open")
    with KhoServer(tmp_path / "data", production_limits=True) as server:
        for number in range(40):
            server.call(ADD, conversation_id="purged", role="user", content=str(number))
        server.call("memory-server/memory/delete", conversation_id="purged")
        running = read_server_info(server.data)
        assert running
        client = boto3_client(running["store_url"])

        def is_purged() -> bool:
            items = client.scan(TableName="kho-MemoryTable")["Items"]
            return all(item["pk"]["S"].endswith(("#purge", FORMAT_KEY[0])) for item in items)

        until(is_purged)


def test_log_correlates_one_request_across_functions(server: KhoServer) -> None:
    correlation_id = "trace-me-0123456789"
    call = {"jsonrpc": "2.0", "method": ADD, "params": ["traced", "user", "never logged"], "id": 1}
    response = server.post("/jsonrpc", json.dumps(call).encode(), **{"X-Correlation-Id": correlation_id})
    assert response.headers["x-correlation-id"] == correlation_id
    lines = [json.loads(line) for line in (server.data / "kho.log").read_text().splitlines()]
    traced = {line["method"]: line for line in lines if line.get("correlation_id") == correlation_id}
    assert set(traced) == {"endpoints/jsonrpc", ADD}
    assert traced[ADD]["store_calls"] >= 2
    assert "never logged" not in (server.data / "kho.log").read_text()
