"""POST /oauth/revoke: revoke an access or refresh token, and with it the grant (RFC 7009)."""

from http import HTTPStatus

from api.deployment import OAUTH, PROXY_SECRET, lambda_function, table
from api.http_events import HttpRequest, HttpResponse
from oauth.http import form_of, oauth_endpoint
from oauth.metering import authenticated_client, metered_grants
from shared.access.oauth.errors import OAuthError


@lambda_function(
    OAUTH,
    PROXY_SECRET,
    table("Access", "GetItem", "UpdateItem"),
    table("Limits", "UpdateItem"),
    timeout=10,
    routes=("POST /oauth/revoke",),
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("revoke")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer that the token is not valid any more, even if it never was."""
    form = form_of(request)
    client = authenticated_client(request, form)
    if "token" not in form:
        raise OAuthError("invalid_request", "token is required.")
    metered_grants(request).revoke_token(form["token"], client)
    return HttpResponse(HTTPStatus.OK)
