"""The gateway's Lambda authorizer, for API keys and an identity provider's tokens.

Invalid credentials are let through with a context that says so, and the method answers 401 as the contract requires:
if an authorizer refuses, an HTTP API answers 403 with a body of its own. The gateway caches this function's answers for
a minute, but not its failures.
"""

from typing import Any

from api.authentication import require_resource
from api.deployment import CREDENTIALS, lambda_function
from shared.access.credentials import verifier
from shared.access.source_address import require_proxy
from shared.platform.telemetry import correlation_id_from
from shared.rpc.errors import NotSignedIn
from shared.rpc.observation import observe


@lambda_function(CREDENTIALS, timeout=10, concurrency="AuthorizerConcurrency")
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer in the simple format of payload 2.0."""
    return {"isAuthorized": True, "context": _context_of(event)}


def _context_of(event: dict[str, Any]) -> dict[str, Any]:
    headers = event.get("headers") or {}
    proposed = headers.get("x-correlation-id") or event["requestContext"].get("requestId")
    try:
        with observe("endpoints/authorizer", correlation_id_from(proposed)):
            require_proxy(headers)
            identity = verifier().verify(event["identitySource"][0])
            require_resource(identity)  # the gateway caches the answer for all routes, none of which is a resource
    except NotSignedIn as error:
        return {"refused": error.message}
    caller = identity.caller
    context = {"sub": caller.sub, "roles": ",".join(sorted(caller.roles)), "tenant_id": caller.tenant_id}
    return context if identity.expires_at is None else context | {"expires_at": str(identity.expires_at)}
