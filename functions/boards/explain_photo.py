"""POST /vision/explain: a board's photo and question, answered by the language model.

Firmware shows callers the body of an answer with status 200 as it is, and none of any other. So refusals have status
200 too, except for a request without a valid token. Firmware hangs at answers of 8 KB.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from api.authentication import anonymous_source
from api.deployment import (
    DEVICES,
    LANGUAGE_MODEL,
    PROXY_SECRET,
    UNKNOWN_BOARD_LIMITS,
    lambda_function,
    table,
    variables,
)
from api.http_events import HttpRequest, HttpResponse, error_response
from api.multipart import parse_form
from shared.access.rate_limits import rate_limits
from shared.devices.photo_explanation import explain_photo
from shared.devices.vision import require_camera
from shared.platform.config import config
from shared.rpc.errors import InvalidRequest, KhoError, NotSignedIn, TooLarge, TooManyRequests
from shared.rpc.observation import observe
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice

MAX_PHOTO_BYTES: Final = 4 * 1024 * 1024
"""The limit of a whole form."""
MAX_ANSWER_BYTES: Final = 3_500
"""The limit of an answer's body. With its headers it stays below 4 KB."""
_NAME: Final = "boards/explain_photo"


@lambda_function(
    table("Devices", "BatchGetItem", "GetItem"),
    table("Limits", "UpdateItem"),
    LANGUAGE_MODEL,
    PROXY_SECRET,
    UNKNOWN_BOARD_LIMITS,
    variables("KHO_DEVICE_PHOTO_BURST", "KHO_DEVICE_PHOTOS_A_MINUTE"),
    condition=DEVICES,
    routes=("POST /vision/explain",),
    concurrency="AnonymousConcurrency",
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer a board."""
    request = HttpRequest.from_event(event)
    device: RegisteredDevice | None = None
    try:
        with observe(_NAME, request.correlation_id):
            device = _camera(request)
            text = _explanation(device, request)
        response = _response("response", text, success=True)
    except KhoError as error:
        is_stranger = device is None and isinstance(error, NotSignedIn | TooManyRequests)
        if is_stranger:
            response = error_response(request, error, "")
        else:
            response = _response("message", error.message, success=False)
    return response.to_event(request.correlation_id)


def _camera(request: HttpRequest) -> RegisteredDevice:
    """Return the device whose token the request has. A request without a valid token counts for its address."""
    source = anonymous_source(request)
    try:
        return require_camera(request.headers.get("authorization", ""))
    except NotSignedIn:
        if config().auth == "required":
            rate_limits().require_unknown_board_capacity(source)
        raise


def _explanation(device: RegisteredDevice, request: HttpRequest) -> str:
    if len(request.body) > MAX_PHOTO_BYTES:
        raise TooLarge("The photo exceeds 4 MB.")
    rate_limits().require_photo_capacity(f"{device.tenant_id}#{device.id}")
    form = parse_form(request.headers.get("content-type", ""), request.body)
    if "file" not in form:
        raise InvalidRequest("The form has no part 'file' with the photo.")
    question = form.get("question", b"").decode("utf-8", "replace")
    return explain_photo(question, form["file"], seconds=config().vision_seconds)


def _response(name: str, text: str, *, success: bool) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, _fitting_body({"success": success}, name, text))


def _fitting_body(content: dict[str, Any], name: str, text: str) -> str:
    """Return the content with as much of the text as fits, cut between two words."""
    body = compact(content | {name: text})
    if len(body.encode()) <= MAX_ANSWER_BYTES:
        return body
    fitting, too_long = 0, len(text)
    while too_long - fitting > 1:
        length = (fitting + too_long) // 2
        if len(compact(content | {name: f"{text[:length]}…"}).encode()) <= MAX_ANSWER_BYTES:
            fitting = length
        else:
            too_long = length
    words = text[:fitting].rsplit(maxsplit=1)[0]
    return compact(content | {name: f"{words.rstrip()}…"})
