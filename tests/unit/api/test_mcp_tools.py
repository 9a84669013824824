"""Results of devices as MCP clients take them."""

from __future__ import annotations

from typing import Any

import pytest

from api.mcp_tools import with_structured_value


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("[1,2]", [1, 2]), ("21.5", 21.5), ('"on"', "on"), ("null", None)]
)
def test_json_that_is_not_an_object_is_structured_content(text: str, value: Any) -> None:
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    assert with_structured_value(result) == result | {"structuredContent": {"result": value}}


@pytest.mark.parametrize(
    "content",
    [
        [],
        [{"type": "text", "text": "The lamp is on."}],
        [{"type": "text", "text": '{"volume": 50}'}],
        [{"type": "text", "text": "NaN"}],
        [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
    ],
)
def test_other_content_has_no_structured_content(content: list[dict[str, Any]]) -> None:
    assert with_structured_value({"content": content}) == {"content": content}
