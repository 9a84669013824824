"""GET and POST /oauth/authorize: the page on which a person allows a client to use Kho, and the decision on it."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from urllib.parse import urlencode

from api.deployment import OAUTH, PROXY_SECRET, lambda_function, table, variables
from api.http_events import HttpRequest, HttpResponse
from oauth.http import form_of, oauth_endpoint, query_of
from oauth.metering import admit_stranger
from oauth.page import REQUEST_OVER, consent_page, error_page, render_error
from shared.access.api_keys import ApiKeys
from shared.access.oauth.authorization_requests import (
    AuthorizationRequest,
    AuthorizationRequests,
    ResourceOwner,
    read_request,
)
from shared.access.oauth.clients import ClientDocuments, OAuthClients
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.grants import Grants
from shared.access.oauth.resources import canonical_resource
from shared.aws.dynamodb import ConditionFailed, Table
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc.caller import ROLES
from shared.rpc.errors import NotAllowed, NotSignedIn


@lambda_function(
    OAUTH,
    PROXY_SECRET,
    variables("KHO_OIDC_CLIENT_ID", "KHO_OIDC_ISSUER", "KHO_CLIENT_METADATA_DOCUMENTS"),
    table("Access", "GetItem", "PutItem", "UpdateItem", "DeleteItem"),
    table("Limits", "UpdateItem"),
    timeout=20,
    routes=(
        "GET /oauth/authorize",
        "POST /oauth/authorize",
    ),
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("authorize", render_error=render_error)
def handler(request: HttpRequest) -> HttpResponse:
    """Show a client's request, or carry out the decision on it."""
    return _decide(request) if request.method == "POST" else _show(request)


def _show(request: HttpRequest) -> HttpResponse:
    """Store a client's request and show it. Nothing leads to a redirect URI that the client has not registered."""
    admit_stranger(request, "sign-in pages")
    query = query_of(request)
    client_id = query.get("client_id", "")
    if client_id.startswith("https://") and not config().client_metadata_documents:
        raise OAuthError("invalid_request", "This server fetches no metadata of clients: the client must register.")
    client = _clients().find(client_id)
    if client is None:
        raise OAuthError("invalid_request", "There is no client with this client_id. It must register again.")
    redirect_uri = client.require_redirect_uri(query.get("redirect_uri"))
    try:
        resource = canonical_resource(query.get("resource", ""), config().public_url)
        pending = read_request(query, client, redirect_uri, resource)
    except OAuthError as error:
        answer = {"error": error.code, "error_description": error.description, "state": query.get("state")}
        back = _address(redirect_uri, answer)
        return error_page(request, HTTPStatus.BAD_REQUEST, error.description, back)
    return consent_page(request, pending, _requests().store(pending))


def _decide(request: HttpRequest) -> HttpResponse:
    _refuse_foreign_forms(request.headers)
    form = form_of(request)
    handle = form.get("request", "")
    pending = _requests().find(handle)
    if pending is None:
        admit_stranger(request)
        raise OAuthError("invalid_request", REQUEST_OVER)
    if form.get("decision") != "allow":
        return _refuse(pending, handle)
    role = next((each for each in ROLES if each == form.get("role", pending.role)), None)
    if role is None:
        raise OAuthError("invalid_scope", f"The roles are {', '.join(ROLES)}.")
    owner = pending.owner
    if owner is None:
        try:
            owner = _key_owner(form.get("key", ""))
        except NotSignedIn:
            admit_stranger(request)
            return consent_page(request, pending, handle, problem="refused" if "key" in form else "missing")
    removal = _requests().removal(handle)
    extension = _clients().extend_lifetime(pending.client_id)
    try:
        code = Grants(_table()).issue_code(pending, owner, role, removal, *([extension] if extension else []))
    except ConditionFailed:
        raise OAuthError("invalid_request", REQUEST_OVER) from None
    logger.info("granted", extra={"tenant_id": owner.tenant_id, "client_id": pending.client_id, "role": role})
    return _redirect(pending, {"code": code, "state": pending.state})


def _refuse(pending: AuthorizationRequest, handle: str) -> HttpResponse:
    try:
        _table().write(_requests().removal(handle))
    except ConditionFailed:
        raise OAuthError("invalid_request", REQUEST_OVER) from None
    answer = {"error": "access_denied", "error_description": "The person denied the request.", "state": pending.state}
    return _redirect(pending, answer)


def _key_owner(text: str) -> ResourceOwner:
    key = ApiKeys(_table()).authenticate(text.strip())
    return ResourceOwner(key.tenant_id, key.name, key.role, key.id, int(key.ends) if key.ends else None)


def _refuse_foreign_forms(headers: Mapping[str, str]) -> None:
    """Refuse forms that another page sends (CSRF): it could let its own key sign a request of this browser's client."""
    origin, site = headers.get("origin", config().public_url), headers.get("sec-fetch-site", "same-origin")
    if origin.lower() != config().public_url or site != "same-origin":
        raise NotAllowed("This form was sent by another page.")


def _redirect(pending: AuthorizationRequest, answer: Mapping[str, str | None]) -> HttpResponse:
    """Return to the client. 303 makes the browser drop the form, with the key in it."""
    headers = {"location": _address(pending.redirect_uri, answer), "referrer-policy": "no-referrer"}
    return HttpResponse(HTTPStatus.SEE_OTHER, headers=headers)


def _address(redirect_uri: str, answer: Mapping[str, str | None]) -> str:
    """Return the redirect URI with an answer, which names the issuer (RFC 9207)."""
    parameters = {name: value for name, value in answer.items() if value is not None} | {"iss": config().public_url}
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(parameters)}"


def _table() -> Table:
    return Table(config().access_table)


def _requests() -> AuthorizationRequests:
    return AuthorizationRequests(_table())


@cache
def _documents() -> ClientDocuments:
    return ClientDocuments()


def _clients() -> OAuthClients:
    return OAuthClients(_table(), config().public_url, _documents())
