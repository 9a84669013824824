"""GET /.well-known/oauth-authorization-server: the endpoints and features of Kho's OAuth 2.1 server (RFC 8414)."""

from http import HTTPStatus

from api.deployment import PUBLIC_URL, lambda_function, variables
from api.http_events import HttpRequest, HttpResponse, endpoint
from oauth.http import require_oauth
from shared.access.oauth.client_metadata import AUTH_METHODS, GRANT_TYPES
from shared.platform.config import config
from shared.rpc.caller import ROLES
from shared.rpc.strict_json import compact


@lambda_function(
    PUBLIC_URL,
    variables("KHO_CLIENT_METADATA_DOCUMENTS"),
    timeout=10,
    routes=("GET /.well-known/oauth-authorization-server",),
)
@endpoint("oauth/metadata")
def handler(_request: HttpRequest) -> HttpResponse:
    """Answer with the metadata, whose addresses come from the settings alone."""
    require_oauth()
    issuer = config().public_url
    metadata = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": ROLES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": GRANT_TYPES,
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": config().client_metadata_documents,
        "authorization_response_iss_parameter_supported": True,
        "ui_locales_supported": ["en", "vi"],
    }
    return HttpResponse(HTTPStatus.OK, compact(metadata))
