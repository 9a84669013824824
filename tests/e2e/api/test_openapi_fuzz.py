"""The OpenAPI document, fuzzed: endpoints behave as described and never crash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)

from discovery import openapi
from shared.experiences.secret_scanner import find_secrets
from shared.rpc.catalogue import catalogue
from shared.rpc.names import deception
from shared.rpc.whitespace import is_blank
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.kho_server import KhoServer

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    negative_data_rejection,
    positive_data_acceptance,
]

# A body over a limit is refused with 413 before anything else is checked.
REFUSALS = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429]
CONFIG = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}}})
NEEDED = {
    "POST /research-agent/manage_collections": ("collection_name",),
    "POST /research-agent/manage_projects": ("project_name", "collections"),
}
NAMES = {"name", "collection_name", "project_name"}
# No schema describes public addresses either, or versions that firmware can parse.
FIXED = {
    "POST /device-server/firmware/set": {"url": "https://files.invalid/firmware.bin", "version": "2.4.3"},
    "POST /device-server/webhooks/set": {"url": "https://hooks.invalid/kho"},
}
DOCUMENT = openapi.document() | {"security": []}  # the server is open
OPERATIONS = {
    result.ok().label: result.ok()
    for result in schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG).get_all_operations()
    if isinstance(result, Ok)
}
# An endpoint without a body needs only one request. The others share 100,000.
BODIES = sorted(label for label in OPERATIONS if OPERATIONS[label].body)
EXAMPLES = sized(2, full=100_000 // (2 * len(BODIES)) + 1)


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, GenerationMode.POSITIVE) for label in sorted(OPERATIONS)]
    # Models refuse invalid bodies alike at all methods: a quarter of them shows it here, and all at full size.
    + [(label, GenerationMode.NEGATIVE) for label in BODIES[:: sized(4, full=1)]],
)
@pytest.mark.stress
def test_endpoints_conform_to_the_openapi_document(
    server: KhoServer, label: str, mode: GenerationMode, record_property: Callable[[str, object], None]
) -> None:
    """An endpoint answers random requests as its OpenAPI description says, and never with a server error."""
    requests = 0

    # JSON-RPC reports errors inside an answer of status 200.
    checks = [check for check in CHECKS if label != "POST /jsonrpc" or check is not negative_data_rejection]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def fuzz(case: schemathesis.Case[Any]) -> None:
        nonlocal requests
        requests += 1
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            body: dict[str, Any] = _shareable(case.body)
            for fields in (body, body.get("payload")):
                if isinstance(fields, dict):
                    fields.pop("cursor", None)  # no schema describes which cursors a list has issued
                    for name in NAMES & fields.keys():
                        if isinstance(fields[name], str) and deception(fields[name]):
                            fields[name] = "garden"  # nor which letters look alike
            for name in NEEDED.get(label, ()):
                body[name] = body.get(name) or "garden"  # nor which action needs which parameter
            case.body = body | FIXED.get(label, {})
        case.call_and_validate(base_url=server.address, checks=checks, timeout=CEILING_SECONDS)

    fuzz()
    record_property("count", requests)
    record_property("load", f"random requests to {len(OPERATIONS)} endpoints, valid ones and invalid ones")
    record_property("outcome", "every answer as described, no server error")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent-data/create_document", {"document_id": "root"}),
        ("agent-data/create_document", {"document_id": "late", "created_at": "9999-12-31T23:59:59-07:00"}),
        ("agent-data/query_knowledge", {"query": "\ufeff"}),
        ("memory-server/memory/clear", {"conversation_id": "a\ufeffb"}),
        ("research-agent/augment_knowledge", {"collection": "a\ufeffb"}),
        ("research-agent/query_knowledge_base", {"query": "\ufeff"}),
    ],
)
def test_parameters_are_refused_as_the_schema_says(server: KhoServer, method: str, params: dict[str, Any]) -> None:
    """The server refuses parameters that their schema excludes, and no others, where random requests rarely come."""
    server.post("/research-agent/manage_collections", b'{"action": "create", "collection_name": "garden"}')
    others: dict[str, dict[str, Any]] = {
        "agent-data/create_document": {"content": {"body": "x"}, "parent_id": "missing"},
        "research-agent/augment_knowledge": {"content": "x", "source": "x", "collection": "garden"},
    }
    body = others.get(method, {}) | params
    response = server.post(f"/{method}", json.dumps(body).encode())
    accepted = response.status in (200, 404)
    assert accepted == jsonschema_rs.validator_for(catalogue().methods[method].params).is_valid(body), response.data


def test_oversize_body_is_refused_as_described(server: KhoServer) -> None:
    """A body that only API Gateway sees has the gateway's own answer, which the OpenAPI document describes."""
    operation = OPERATIONS["POST /memory-server/memory/get_or_create_summary"]
    body: dict[str, Any] = {"conversation_id": "large", "language": "x" * 11_000_000}
    case = operation.Case(body=body, media_type="application/json")
    response = case.call(base_url=server.address, timeout=CEILING_SECONDS)
    assert response.status_code == 413
    case.validate_response(response, checks=[response_schema_conformance, status_code_conformance])


def _shareable(value: Any) -> Any:
    """Replace text of invisible characters and secrets: no JSON Schema describes them."""
    if isinstance(value, dict):
        return {name: _shareable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shareable(each) for each in value]
    return "x" if isinstance(value, str) and value and (is_blank(value) or find_secrets(value)) else value
