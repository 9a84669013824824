"""POST /oauth/token: exchange an authorization code or a refresh token for tokens (RFC 6749, with PKCE)."""

from collections.abc import Mapping
from http import HTTPStatus

from api.deployment import OAUTH, PROXY_SECRET, lambda_function, table
from api.http_events import HttpRequest, HttpResponse
from oauth.http import form_of, oauth_endpoint
from oauth.metering import authenticated_client, metered_grants
from shared.access.oauth.authorization_requests import role_of
from shared.access.oauth.clients import OAuthClient
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.grants import Grants, IssuedTokens
from shared.access.oauth.resources import canonical_resource
from shared.platform.config import config
from shared.rpc.strict_json import compact


@lambda_function(
    OAUTH,
    PROXY_SECRET,
    table("Access", "GetItem", "PutItem", "UpdateItem"),
    table("Limits", "UpdateItem"),
    timeout=20,
    # MCP's revision 2025-03-26 knew the second: the SDK refreshes there until it has read the metadata.
    routes=("POST /oauth/token", "POST /token"),
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("token")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer with tokens."""
    form = form_of(request)
    client = authenticated_client(request, form)
    tokens = _exchange(form, client, metered_grants(request))
    body = {
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_in": tokens.expires_in,
        "scope": tokens.role,
        **({"refresh_token": tokens.refresh_token} if tokens.refresh_token else {}),
    }
    return HttpResponse(HTTPStatus.OK, compact(body), {"pragma": "no-cache"})


def _exchange(form: Mapping[str, str], client: OAuthClient, grants: Grants) -> IssuedTokens:
    resource = canonical_resource(form["resource"], config().public_url) if "resource" in form else ""
    match form.get("grant_type"):
        case "authorization_code":
            code, verifier = _required(form, "code"), _required(form, "code_verifier")
            return grants.redeem(code, client, verifier, form.get("redirect_uri"), resource)
        case "refresh_token":
            role = role_of(form["scope"]) if "scope" in form else None
            return grants.refresh(_required(form, "refresh_token"), client, role, resource)
    raise OAuthError("unsupported_grant_type", "grant_type is 'authorization_code' or 'refresh_token'.")


def _required(form: Mapping[str, str], name: str) -> str:
    if name not in form:
        raise OAuthError("invalid_request", f"{name} is required.")
    return form[name]
