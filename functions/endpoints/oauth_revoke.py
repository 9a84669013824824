"""POST /oauth/revoke: revoke an access or refresh token, and with it the grant (RFC 7009)."""

from http import HTTPStatus

from api.deployment import PROXY_SECRET, lambda_function, table
from api.http_events import HttpRequest, HttpResponse
from api.oauth_http import form_of, oauth_endpoint
from shared.access.oauth.clients import OAuthClients
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.grants import Grants
from shared.config import config
from shared.dynamodb import Table


@lambda_function(
    PROXY_SECRET,
    table("Access", "GetItem", "UpdateItem"),
    table("Limits", "UpdateItem"),
    timeout=10,
    routes={"Revoke": "POST /oauth/revoke"},
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("oauth_revoke")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer that the token is not valid any more, even if it never was."""
    form = form_of(request)
    store = Table(config().access_table)
    client = OAuthClients(store, config().public_url).authenticate(form, request.headers.get("authorization", ""))
    if "token" not in form:
        raise OAuthError("invalid_request", "token is required.")
    Grants(store).revoke_token(form["token"], client)
    return HttpResponse(HTTPStatus.OK)
