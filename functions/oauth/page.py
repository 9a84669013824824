"""The pages of OAuth's sign-in, in English and Vietnamese, without scripts and cookies."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from api.http_events import HttpResponse
from shared.access.oauth.display_names import look_alike_scripts
from shared.access.oauth.redirect_uris import host_of, source_of
from shared.access.oauth.resources import MCP, catalog_of
from shared.platform.config import config
from shared.rpc.caller import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.http_events import HttpRequest
    from shared.access.oauth.authorization_requests import AuthorizationRequest
    from shared.access.oauth.errors import OAuthError

SIGN_IN: Final = "/oauth/sign-in"
REQUEST_OVER: Final = "This request is over: it took too long, or has been decided. Start again in the application."
_STYLE: Final = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:34rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.4rem}dt{font-weight:600;margin-top:.6rem}dd{margin:0;overflow-wrap:anywhere}"
    "fieldset{border:1px solid #8888;border-radius:.5rem;margin:1rem 0}label{display:block;margin:.4rem 0}"
    "input[type=password]{width:100%;box-sizing:border-box;font:inherit;padding:.5rem}"
    "button,a.button{font:inherit;padding:.5rem 1.2rem;margin:.4rem .4rem 0 0;display:inline-block}"
    "[role=alert]{border-left:.3rem solid #c33;padding-left:.7rem}ul{margin:.2rem 0}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_RANGE: Final = re.compile(r"\s*([a-z]{1,8})(?:-[a-z0-9-]+)?\s*(?:;\s*q=([01](?:\.\d{1,3})?))?\s*", re.IGNORECASE)

_ENGLISH: Final = {
    "title": "Access to Kho",
    "asks": "An application asks for access to Kho",
    "application": "Application",
    "unnamed": "without a name",
    "own_words": "This is what it calls itself, unchecked.",
    "look_alike": "Take care: the name contains letters of another alphabet ({scripts}), which can look like others.",
    "return": "After this page you go to",
    "resource": "It asks for",
    "whole": "all of Kho, at {resource}",
    "endpoint": "the tools at {resource}",
    "role": "It may at most",
    "reader": "read",
    "writer": "read and write",
    "operator": "read, write and command devices",
    "admin": "do everything, keys and grants included",
    "tools": "{count} tools",
    "limit": "It never gets more than your own role allows.",
    "key": "Your Kho key",
    "key_help": "The key is checked here and is not passed on to the application.",
    "provider": "Or sign in with {host}",
    "signed_in": "You are signed in as",
    "tenant": "tenant {tenant}",
    "allow": "Allow",
    "deny": "Deny",
    "failed": "This does not work",
    "back": "Back to {host}",
    "refused": "This key is not valid, or no longer. Nothing was granted.",
    "missing": "Enter your key.",
    "close": "If you did not expect this page, close it: nothing has been granted.",
}
_VIETNAMESE: Final = {
    "title": "Quyền truy cập Kho",
    "asks": "Một ứng dụng xin quyền truy cập Kho",
    "application": "Ứng dụng",
    "unnamed": "không có tên",
    "own_words": "Đây là tên ứng dụng tự xưng, chưa ai kiểm tra.",
    "look_alike": "Cẩn thận: tên có chữ của bảng chữ cái khác ({scripts}), có thể trông giống chữ thường gặp.",
    "return": "Sau trang này bạn sẽ được chuyển tới",
    "resource": "Ứng dụng xin",
    "whole": "toàn bộ Kho, tại {resource}",
    "endpoint": "các công cụ tại {resource}",
    "role": "Ứng dụng được phép nhiều nhất",
    "reader": "đọc",
    "writer": "đọc và ghi",
    "operator": "đọc, ghi và điều khiển thiết bị",
    "admin": "làm mọi việc, kể cả quản lý khóa và quyền đã cấp",
    "tools": "{count} công cụ",
    "limit": "Ứng dụng không bao giờ có nhiều quyền hơn vai trò của chính bạn.",
    "key": "Khóa Kho của bạn",
    "key_help": "Khóa chỉ được kiểm tra tại đây, không chuyển cho ứng dụng.",
    "provider": "Hoặc đăng nhập bằng {host}",
    "signed_in": "Bạn đang đăng nhập với tên",
    "tenant": "tổ chức {tenant}",
    "allow": "Cho phép",
    "deny": "Từ chối",
    "failed": "Không thực hiện được",
    "back": "Quay lại {host}",
    "refused": "Khóa không hợp lệ hoặc đã hết hiệu lực. Chưa cấp quyền nào.",
    "missing": "Hãy nhập khóa của bạn.",
    "close": "Nếu bạn không chờ trang này, hãy đóng lại: chưa có quyền nào được cấp.",
}


def consent_page(
    request: HttpRequest, pending: AuthorizationRequest, handle: str, *, problem: str = ""
) -> HttpResponse:
    """Return the page that asks for a decision on a request, again with a `problem` if there was one."""
    texts = _texts(request)
    alert = f'<p role="alert">{texts[problem]}</p>' if problem else ""
    body = f"""<h1>{texts["asks"]}</h1>{alert}
<dl>{_application(pending, texts)}
<dt>{texts["return"]}</dt><dd><strong>{escape(host_of(pending.redirect_uri))}</strong></dd>
<dt>{texts["resource"]}</dt><dd>{_resource(pending, texts)}</dd></dl>
<form method="post" action="/oauth/authorize">
<input type="hidden" name="request" value="{escape(handle)}">
<fieldset><legend>{texts["role"]}</legend>{_roles(pending, texts)}<p>{texts["limit"]}</p></fieldset>
{_sign_in(pending, handle, texts)}
<button name="decision" value="allow">{texts["allow"]}</button>
<button name="decision" value="deny" formnovalidate>{texts["deny"]}</button></form>
<p>{texts["close"]}</p>"""
    status = HTTPStatus.FORBIDDEN if problem else HTTPStatus.OK
    return _page(texts, body, status, f"'self' {source_of(pending.redirect_uri)}")


def render_error(request: HttpRequest, status: HTTPStatus, error: OAuthError) -> HttpResponse:
    """Return the page of an error that concerns the person alone."""
    return error_page(
        request, HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNAUTHORIZED else status, error.description
    )


def error_page(request: HttpRequest, status: HTTPStatus, description: str, back: str = "") -> HttpResponse:
    """Return the page of an error. The link `back` tells the client: a person follows it or not."""
    texts = _texts(request)
    link = ""
    if back:
        label = texts["back"].format(host=host_of(back))
        link = f'<p><a class="button" rel="noreferrer" href="{escape(back)}">{escape(label)}</a></p>'
    body = f'<h1>{texts["failed"]}</h1><p role="alert">{escape(description)}</p>{link}<p>{texts["close"]}</p>'
    return _page(texts, body, status, "'none'")


def _application(pending: AuthorizationRequest, texts: Mapping[str, str]) -> str:
    name = f"“{escape(pending.client_name)}”" if pending.client_name else texts["unnamed"]
    scripts = look_alike_scripts(pending.client_name)
    warning = texts["look_alike"].format(scripts=", ".join(scripts)) if scripts else ""
    address = urlsplit(pending.client_id).netloc if pending.client_id.startswith("https://") else ""
    return (
        f"<dt>{texts['application']}</dt><dd><bdi>{name}</bdi>{f' ({escape(address)})' if address else ''}</dd>"
        f"<dd>{texts['own_words']}</dd>" + (f'<dd role="alert">{warning}</dd>' if warning else "")
    )


def _resource(pending: AuthorizationRequest, texts: Mapping[str, str]) -> str:
    is_endpoint = urlsplit(pending.resource).path.startswith(MCP)
    return escape(texts["endpoint" if is_endpoint else "whole"].format(resource=pending.resource))


def _roles(pending: AuthorizationRequest, texts: Mapping[str, str]) -> str:
    """Return a choice of the roles up to the one that the client asks for, each with its tools."""
    highest = ROLES.index(pending.role)
    if pending.owner:
        highest = min(highest, ROLES.index(pending.owner.role))
    choices = []
    for role in ROLES[: highest + 1]:
        checked = " checked" if role == ROLES[highest] else ""
        choices.append(
            f'<label><input type="radio" name="role" value="{role}"{checked}> {texts[role]} ({role})</label>'
        )
    catalog = catalog_of(pending.resource.removeprefix(config().public_url))
    usable = [tool for tool in (catalog.tools if catalog else []) if ROLES.index(tool.role) <= highest]
    titles = "".join(f"<li>{escape(str(tool.described['title']))} ({tool.role})</li>" for tool in usable)
    count = texts["tools"].format(count=len(usable))
    return "".join(choices) + (f"<details><summary>{count}</summary><ul>{titles}</ul></details>" if usable else "")


def _sign_in(pending: AuthorizationRequest, handle: str, texts: Mapping[str, str]) -> str:
    if pending.owner:
        tenant = texts["tenant"].format(tenant=escape(pending.owner.tenant_id))
        return f"<p>{texts['signed_in']} <strong>{escape(pending.owner.sub)}</strong> ({tenant}).</p>"
    key = (
        f'<label>{texts["key"]} <input type="password" name="key" required autocomplete="off" spellcheck="false">'
        f"</label><p>{texts['key_help']}</p>"
    )
    if not config().oidc_client_id:
        return key
    label = texts["provider"].format(host=urlsplit(config().oidc_issuer).netloc)
    return f'{key}<p><a class="button" href="{SIGN_IN}?request={escape(handle)}">{escape(label)}</a></p>'


def _page(texts: Mapping[str, str], body: str, status: HTTPStatus, form_action: str) -> HttpResponse:
    """Return a page that cannot be framed, runs no script, and whose form leads nowhere else."""
    language = "vi" if texts is _VIETNAMESE else "en"
    html = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{texts["title"]}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>"
    )
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {form_action}; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-language": language,
        "vary": "accept-language",
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",  # without a referrer, the form's Origin would be 'null'
    }
    return HttpResponse(status, html, headers)


def _texts(request: HttpRequest) -> Mapping[str, str]:
    """Return the texts in the language that the browser prefers."""
    ranges = [
        match for each in request.headers.get("accept-language", "").split(",") if (match := _RANGE.fullmatch(each))
    ]
    for match in sorted(ranges, key=lambda match: -float(match[2] or 1)):
        if match[1].lower() in ("en", "vi"):
            return _VIETNAMESE if match[1].lower() == "vi" else _ENGLISH
    return _ENGLISH
