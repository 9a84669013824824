"""The functions' environment: the local stores, with the data that the events of `tests/events` name."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from infra.local.container_settings import container_settings
from infra.local.iot.broker.limits import Limits
from infra.local.iot.iot_core import configure_functions, run_embedded
from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.sockets import listen
from infra.local.template import STACK, load
from shared.access import keys as access_keys
from shared.access.oauth.authorization_requests import DECISION_SECONDS, AuthorizationRequest
from shared.access.oauth.clients import CONSOLE
from shared.access.oauth.grants import GRANT_SECONDS, IDLE_SECONDS
from shared.access.oauth.token_text import hash_of, read_token
from shared.aws.dynamodb import Table, Write, to_item
from shared.devices import keys as device_keys
from shared.devices.activation_codes import activation_codes
from shared.devices.boards import Board
from shared.devices.registry import registry
from shared.devices.sessions import DeviceSession, SessionStore
from shared.devices.webhooks import new_secret, webhooks
from shared.experiences import keys as experience_keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.ingestion_jobs import IngestionJobs
from shared.memory.conversations import Conversations
from shared.platform.clock import now_ms
from shared.platform.config import config
from shared.rpc.caller import ROLES, Caller
from tests.events import CAMERA, CAMERA_TOKEN, CODE, DEVICE, KEY, OLD_DEVICE, PASSWORD, REFRESH_TOKEN, TENANT
from tests.helpers.duckduckgo import duckduckgo
from tests.helpers.dynamodb import running_store
from tests.helpers.identity_provider import identity_provider
from tests.helpers.qdrant_server import running_qdrant
from tests.suites.rie.installation import TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator

_PASSED_ON: Final = ("AWS_ACCESS", "AWS_SECRET", "AWS_REGION", "AWS_DEFAULT", "KHO_SEARCH_", "NO_PROXY", "no_proxy")
"""The variables that SAM sets for a container, and the double of the search engine."""

PUBLIC_URL: Final = "https://api.example"
DOCUMENTS: Final = {"guide": "root", "guide-soil": "guide", "draft": "root", "old-notes": "root", "lost-notes": "root"}
EXPERIENCES: Final = {1: "", 2: "", 3: "2026-11-18T00:00:00.000Z"}
"""The deletion times, by the last digit of their ids."""
FIRMWARE_URL: Final = "https://files.example.com/xiaozhi-2.4.3.bin"
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("device_server-firmware_set", {"board": "old-board", "version": "2.4.3", "url": FIRMWARE_URL}),
    *(
        ("memory_server-add_message", {"conversation_id": chat, "role": "user", "content": f"Message {number}"})
        for chat in ("chat_garden", "chat_cleared", "chat_deleted")
        for number in range(8)
    ),
    ("memory_server-set_summary", {"conversation_id": "chat_garden", "summary": "About a garden."}),
    *(
        (
            "agent_data-create_document",
            {"document_id": id_, "parent_id": parent, "content": {"body": "Ferns like shade."}},
        )
        for id_, parent in DOCUMENTS.items()
    ),
    ("agent_data-delete_document", {"document_id": "lost-notes"}),
    ("research_agent-manage_collections", {"action": "create", "collection_name": "garden"}),
    ("research_agent-manage_projects", {"action": "create", "project_name": "balcony", "collections": "garden"}),
    (
        "research_agent-augment_knowledge",
        {"content": "Ferns are watered in the morning.", "source": "ferns.md", "collection": "garden"},
    ),
    (
        "research_agent-augment_knowledge",
        {"content": "The well has dried up.", "source": "well.md", "collection": "garden"},
    ),
]


@contextmanager
def running_environment() -> Iterator[dict[str, str]]:
    """Run everything on loopback. Yield the settings of the functions."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kho-rie-")))
        stack.enter_context(running_store())
        os.environ.pop("KHO_QDRANT_FOLDER")
        os.environ |= {name: load().environment[name] for name in ("KHO_AUTH", "KHO_EMBEDDER", "KHO_RERANKER")}
        os.environ["KHO_QDRANT_URL"] = stack.enter_context(running_qdrant()).url
        search = stack.enter_context(duckduckgo(folder))
        os.environ["KHO_SEARCH_PROXY"], os.environ["KHO_SEARCH_CA"] = search.address, str(search.authority)
        os.environ["KHO_DEVICE_SECRET"] = "0" * 64
        config.cache_clear()
        _prepare()
        listener = listen("127.0.0.1", 0)
        stack.callback(listener.close)
        broker = stack.enter_context(run_embedded(listener, Limits(), authorizing=True))
        configure_functions(broker)
        model = DeviceModel(user_name=DEVICE, password=PASSWORD.encode())
        fleet = stack.enter_context(Fleet("127.0.0.1", listener.getsockname()[1], [DEVICE], model))
        fleet.start()
        settings = container_settings(
            load(),
            store_url=os.environ["AWS_ENDPOINT_URL_DYNAMODB"],
            mqtt_url=broker.mqtt_url,
            mqtt_token=broker.token,
            data_plane_url=broker.data_plane_url,
        )
        own = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
        provider = stack.enter_context(identity_provider())
        signing_in = {"KHO_OIDC_ISSUER": provider.issuer, "KHO_OIDC_AUDIENCE": "kho", "KHO_OIDC_CLIENT_ID": "kho"}
        of_stack = {"KHO_FUNCTION_PREFIX": STACK, "KHO_MODERATORS_TENANT": TENANT, "KHO_PUBLIC_URL": PUBLIC_URL}
        console = {
            "KHO_CONSOLE_FOLDER": str(TARGET / "layers" / "ConsoleLayer" / "console")
        }  # /opt/console when deployed
        yield settings | own | of_stack | signing_in | console


def _prepare() -> None:
    caller = Caller("tester", frozenset(ROLES), TENANT)
    with patch("shared.memory.conversations._new_generation", return_value="0" * 32):  # the sample event has its id
        Conversations(Table(config().memory_table), TENANT).append("chat_private", "user", "My number is 0123.")
    for function, params in CALLS:
        handler = import_module(function.replace("-", ".")).handler
        call = {"method": function, "params": params, "caller": caller.record(), "correlation_id": "preparing"}
        answer = handler(call, None)
        assert "result" in answer, answer
    for number in EXPERIENCES:
        Table(config().experiences_table).write(Write("Put", _experience(number)))
    knowledge = Table(config().knowledge_table)
    IngestionJobs(knowledge, TENANT).store_input(
        "watering", CollectionStore(knowledge, TENANT).require("garden"), [], []
    )
    _, key_id, secret = KEY.split("_")
    key = {
        "tenant_id": TENANT,
        "role": "admin",
        "name": "events",
        "secret_hash": hashlib.sha256(secret.encode()).hexdigest(),
        "created_at": "2026-11-18T00:00:00.000Z",
    }
    Table(config().access_table).write(Write("Put", {"pk": access_keys.PARTITION, "sk": key_id} | key))
    _prepare_grant()
    webhooks(TENANT).set("https://hooks.example.com/kho", ["notification", "presence"], new_secret())
    registry().register(TENANT, OLD_DEVICE)
    waiting = Board.identify("a0:85:e3:f4:49:35", "6f1f3b1e-0c11-4ab1-9d35-3f0c1a528a78")
    with patch("shared.devices.activation_codes.new_code", return_value=CODE):
        assert activation_codes().code_of(waiting, "192.0.2.1") == CODE
    registry().register(TENANT, CAMERA)
    sessions = SessionStore(Table(config().devices_table), TENANT, CAMERA)
    token_hash = hashlib.sha256(CAMERA_TOKEN.encode()).hexdigest()
    assert sessions.claim("events", 1)
    assert sessions.start("events", DeviceSession("session", "camera", "2.4.2", now_ms(), "", "events", token_hash))
    registry().register(TENANT, DEVICE)
    Table(config().devices_table).write(
        Write(
            "Update",
            {"pk": device_keys.devices(TENANT), "sk": DEVICE},
            expression="SET password_hash = :hash",
            values={":hash": hashlib.sha256(PASSWORD.encode()).hexdigest()},
        )
    )


def _prepare_grant() -> None:
    """Store a grant of the console and a request, with the refresh token and the handle of the sample events."""
    token = read_token("refresh", REFRESH_TOKEN)
    assert token
    now = int(time.time())
    end = now + GRANT_SECONDS
    grant = {
        "client_id": CONSOLE,
        "client_name": "Kho",
        "redirect_uri": f"{PUBLIC_URL}/console/",
        "resource": f"{PUBLIC_URL}/mcp",
        "refreshable": True,
        "role": "admin",
        "sub": "events",
        "key_id": KEY.split("_")[1],
        "created_at": "2026-11-18T00:00:00.000Z",
        "redeemed_at": "2026-11-18T00:00:00.000Z",
        "ends_at": end,
        "idle_until": now + IDLE_SECONDS,
    }
    table = Table(config().access_table)
    table.write(Write("Put", {"pk": access_keys.grants(TENANT), "sk": token.grant_id} | grant))
    request = AuthorizationRequest(CONSOLE, "Kho", f"{PUBLIC_URL}/console/", True, "0" * 43, PUBLIC_URL, "reader", True)
    pk, sk = access_keys.authorization(hash_of("sample-request"))
    table.write(Write("Put", {"pk": pk, "sk": sk, "expires_at": now + DECISION_SECONDS} | to_item(request)))
    partition = access_keys.grant_tokens(TENANT, token.grant_id)
    table.write(Write("Put", {"pk": partition, "sk": access_keys.token("refresh", token.hash), "expires_at": end}))


def _experience(number: int) -> dict[str, Any]:
    pk, sk = experience_keys.content(f"00000000-0000-4000-8000-{number:012}")
    at = "2026-11-18T00:00:00.000Z"
    content = {
        "title": "A hook's state is old in a callback",
        "problem_description": "The value that a callback reads is the one of its first render.",
        "solution": "Name the value in the callback's dependencies.",
        "keywords": ["react", "usestate"],
    }
    deleted = {"deleted_at": EXPERIENCES[number]} if EXPERIENCES[number] else {}
    return {"pk": pk, "sk": sk, "changed_at": at, "created_at": at, "revision": 1} | content | deleted
