"""GET /oauth/sign-in and /oauth/callback: to the configured identity provider and back, to decide on a request."""

from http import HTTPStatus

from api.deployment import CREDENTIALS, OAUTH, PROVIDER_SECRET, lambda_function, table
from api.http_events import HttpRequest, HttpResponse
from oauth.http import oauth_endpoint, query_of
from oauth.metering import admit_stranger
from oauth.page import REQUEST_OVER, SIGN_IN, consent_page, render_error
from shared.access.oauth.authorization_requests import AuthorizationRequests, ResourceOwner
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.provider_sign_in import CALLBACK, ProviderSignIn
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.rpc.caller import ROLES


@lambda_function(
    CREDENTIALS,
    OAUTH,
    PROVIDER_SECRET,
    table("Access", "DeleteItem", "PutItem"),
    table("Limits", "UpdateItem"),
    timeout=20,
    routes=(f"GET {SIGN_IN}", f"GET {CALLBACK}"),
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("sign_in", render_error=render_error)
def handler(request: HttpRequest) -> HttpResponse:
    """Lead to the provider, or ask the person whom it has signed in."""
    if not config().oidc_client_id:
        raise OAuthError("invalid_request", "This server signs people in with keys alone.")
    requests = AuthorizationRequests(Table(config().access_table))
    if request.path == SIGN_IN:
        return _visit_provider(request, requests)
    return _return_from_provider(request, requests)


def _visit_provider(request: HttpRequest, requests: AuthorizationRequests) -> HttpResponse:
    handle = query_of(request).get("request", "")
    if requests.find(handle) is None:
        admit_stranger(request)
        raise OAuthError("invalid_request", REQUEST_OVER)
    admit_stranger(request, "sign-in pages")  # anybody can open a page, and leave it for the provider again and again
    address = ProviderSignIn(config()).address(requests.start_sign_in(handle))
    return HttpResponse(HTTPStatus.SEE_OTHER, headers={"location": address, "referrer-policy": "no-referrer"})


def _return_from_provider(request: HttpRequest, requests: AuthorizationRequests) -> HttpResponse:
    """Ask the person whom the provider has signed in. Only a decision on this page grants anything."""
    query = query_of(request)
    visit = requests.end_sign_in(query.get("state", ""))
    if visit is None:
        admit_stranger(request)
        raise OAuthError("invalid_request", REQUEST_OVER)
    if query.get("iss", config().oidc_issuer) != config().oidc_issuer or "code" not in query:
        raise OAuthError("access_denied", "The identity provider has not signed you in.")
    caller = ProviderSignIn(config()).caller(query["code"], visit)
    held = [role for role in ROLES if role in caller.roles]
    if not held:
        raise OAuthError("access_denied", "Your account at the identity provider has no role in Kho.")
    signed = requests.finish_sign_in(visit, ResourceOwner(caller.tenant_id, caller.sub, held[-1]))
    if signed is None:
        raise OAuthError("invalid_request", REQUEST_OVER)
    return consent_page(request, *signed)
