"""Sample events of methods, written to `tests/events/` from the examples that the methods declare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from api.handler import Handler

FOLDER: Final = Path(__file__).resolve().parents[2] / "tests" / "events"
TENANT: Final = "acme"
KEY: Final = f"kho_{'0' * 16}_{'0' * 64}"
"""No deployment has this key."""
_CALLER: Final = {"lambda": {"sub": "events", "roles": "admin", "tenant_id": TENANT}}


def sample_event(handler: Handler[Any, Any]) -> str:
    """Return the gateway's event for a call of the method with its example."""
    path, anonymous = f"/{handler.method.name}", handler.method.anonymous
    event = {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            **({} if anonymous else {"authorization": f"Bearer {KEY}"}),
            "content-type": "application/json",
            "host": "api.example",
            "user-agent": "curl/8.14.1",
            "x-forwarded-for": "192.0.2.1",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "api0example",
            **({} if anonymous else {"authorizer": _CALLER}),
            "domainName": "api.example",
            "domainPrefix": "api",
            "http": {
                "method": "POST",
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "curl/8.14.1",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": f"POST {path}",
            "stage": "$default",
            "time": "18/Nov/2026:18:00:00 +0000",
            "timeEpoch": 1795024800000,
        },
        "body": json.dumps(handler.example, ensure_ascii=False),
        "isBase64Encoded": False,
    }
    return json.dumps(event, indent=2, ensure_ascii=False) + "\n"
