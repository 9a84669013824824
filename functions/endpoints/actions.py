"""POST /actions: agent-data's envelope; `action` is a method of agent-data, `payload` its parameters."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from pydantic import Field

from api.authentication import authenticated_caller
from api.deployment import CREDENTIALS, lambda_function
from api.error_formats import AGENT_DATA
from api.http_events import HttpRequest, HttpResponse, endpoint
from shared.platform.config import config
from shared.rpc.caller import LOCAL, TENANT_PATTERN, Caller
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, NotAllowed, UnknownMethod
from shared.rpc.invocation import invoke
from shared.rpc.method import OpenObject, Params, RequestId, read
from shared.rpc.strict_json import compact
from shared.rpc.unknown_fields import refuse_large_params


class Principal(Params):
    """The caller as it describes itself; its roles are labels for the audit log and grant nothing."""

    sub: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    roles: Annotated[list[Annotated[str, Field(max_length=64)]], Field(default_factory=list, max_length=32)]
    tenant_id: Annotated[str, Field(pattern=TENANT_PATTERN)] | None = None


class ActionEnvelope(Params):
    """The body of one request."""

    action: Annotated[str, Field(min_length=1, max_length=64)]
    request_id: RequestId | None = None
    principal: Annotated[Principal, Field(default_factory=lambda: Principal.model_validate({}))]
    payload: OpenObject


@lambda_function(CREDENTIALS, memory=1024, timeout=28, invokes=(f"{AGENT_DATA}/*",), routes=("POST /actions",))
@endpoint("endpoints/actions", server=AGENT_DATA)
def handler(request: HttpRequest) -> HttpResponse:
    """Answer one action with its result and the request's id."""
    authenticated = authenticated_caller(request)
    envelope = read(ActionEnvelope, request.text_json(authenticated))
    caller = _acting_caller(authenticated, envelope.principal)
    entry = catalogue().methods.get(f"{AGENT_DATA}/{envelope.action}")
    if entry is None:
        raise UnknownMethod(f"Unknown action: {envelope.action}", details={"action": envelope.action})
    refuse_large_params(envelope.payload, entry.fields)
    if "request_id" in envelope.payload:
        raise InvalidParams(FieldProblem(field="payload.request_id", message="belongs next to 'action'"))
    echoed = {"request_id": envelope.request_id} if envelope.request_id else {}
    params = envelope.payload | (echoed if "request_id" in entry.fields else {})
    result = invoke(entry.function, entry.name, params, caller, request.correlation_id)
    return HttpResponse(HTTPStatus.OK, compact(result | echoed))


def _acting_caller(authenticated: Caller, principal: Principal) -> Caller:
    """Return the authenticated caller, which the principal must not contradict; with open access, the principal."""
    labels = tuple(principal.roles)
    if config().auth == "open":
        return Caller(principal.sub or LOCAL.sub, LOCAL.roles, principal.tenant_id or LOCAL.tenant_id, labels)
    for name in ("sub", "tenant_id"):
        claimed = getattr(principal, name)
        if claimed is not None and claimed != getattr(authenticated, name):
            raise NotAllowed(
                f"principal.{name} differs from the credentials.",
                details={"field": f"principal.{name}"},
                guidance="Leave out of 'principal' what you do not know.",
            )
    return replace(authenticated, labels=labels)
