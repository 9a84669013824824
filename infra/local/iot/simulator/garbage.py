"""Invalid payloads, as a faulty or malicious device publishes them."""

import json
import random
from typing import Final

_PAYLOADS: Final = (
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b"\xff\xfe\x00",
    b"[" * 2_000,
    b'{"type":"mcp"}',
    b'{"type":"mcp","payload":null}',
    b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":1e999,"result":{}}}',
    b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":{},"result":{}}}',
    b'{"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/\\ud800","params":[]}}',
    b'{"type":"hello"}',
    b'{"type":"hello","version":"\\u0000","features":7}',
    b'{"type":"goodbye","session_id":[]}',
    b"x" * 4_000,
)


def garbage() -> bytes:
    """Return one payload: not JSON, not an envelope, or a reply to a request that was never sent."""
    if random.random() < 0.3:  # noqa: S311 - no secret
        reply = {"jsonrpc": "2.0", "id": random.randrange(2**31), "result": {"content": []}}  # noqa: S311 - no secret
        return json.dumps({"session_id": "", "type": "mcp", "payload": reply}).encode()
    return random.choice(_PAYLOADS)  # noqa: S311 - no secret
