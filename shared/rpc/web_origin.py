"""Refusal of requests that a foreign page in a browser on this machine sends."""

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from shared.rpc.errors import NotAllowed

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def refuse_foreign_pages(headers: Mapping[str, str], *, is_open: bool, origins: Collection[str] = ()) -> None:
    """Raise NotAllowed for a foreign page, recognised by Origin (CSRF) or by Host (DNS rebinding)."""
    host = headers.get("host", "localhost").lower()
    if is_open and re.sub(r":\d*$", "", host).strip("[]") not in _LOOPBACK:
        raise NotAllowed("This host name is not served without keys.", guidance="Call it by a loopback address.")
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        parts = urlsplit(origin.lower())
        if parts.netloc and (parts.netloc == host or (is_open and parts.hostname in _LOOPBACK)):
            return
        if origin.lower() in origins:
            return
    except ValueError:
        pass  # not a URL
    raise NotAllowed("Pages of this origin are not served.", guidance="Call from a program, or from a page here.")
