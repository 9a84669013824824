"""POST /oauth/register: dynamic client registration (RFC 7591)."""

import time
from http import HTTPStatus

from api.deployment import OAUTH, PROXY_SECRET, lambda_function, table
from api.http_events import HttpRequest, HttpResponse
from oauth.http import oauth_endpoint, require_small
from oauth.metering import admit_stranger
from shared.access.oauth.clients import OAuthClients
from shared.access.oauth.errors import OAuthError
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.rpc.errors import ParseError
from shared.rpc.strict_json import compact, parse


@lambda_function(
    OAUTH,
    PROXY_SECRET,
    table("Access", "PutItem"),
    table("Limits", "UpdateItem"),
    timeout=10,
    routes=("POST /oauth/register",),
    concurrency="AnonymousConcurrency",
)
@oauth_endpoint("oauth_register")
def handler(request: HttpRequest) -> HttpResponse:
    """Register a client, which is forgotten after a day unless a person authorises it."""
    admit_stranger(request, "registrations")
    require_small(request)
    try:
        metadata = parse(request.body)
    except ParseError:
        raise OAuthError("invalid_client_metadata", "The body is not a JSON object.") from None
    client, secret = OAuthClients(Table(config().access_table), config().public_url).register(metadata)
    credentials = {"client_secret": secret, "client_secret_expires_at": 0} if secret else {}
    response = client.metadata() | credentials | {"client_id_issued_at": int(time.time())}
    return HttpResponse(HTTPStatus.CREATED, compact(response))
