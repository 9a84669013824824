"""Event filters decide locally as they do on AWS."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.streams import matches_filter

RECORD = {"eventName": "INSERT", "dynamodb": {"Keys": {"sk": {"S": "purge#1"}}, "NewImage": {"n": {"N": "1"}}}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"eventName": ["INSERT"]}, True),
        ({"eventName": ["REMOVE", "INSERT"]}, True),
        ({"eventName": ["REMOVE"]}, False),
        ({"dynamodb": {"Keys": {"sk": {"S": [{"prefix": "purge#"}]}}}}, True),
        ({"dynamodb": {"Keys": {"sk": {"S": [{"prefix": "message#"}]}}}}, False),
        ({"dynamodb": {"OldImage": {"n": {"N": ["1"]}}}}, False),
        ({"dynamodb": {"NewImage": {"n": {"N": ["1"]}}}}, True),
        ({"dynamodb": {"NewImage": {"m": [{"exists": False}]}}}, True),
        ({"dynamodb": {"NewImage": {"n": [{"exists": True}]}}}, True),
        ({"eventName": ["INSERT"], "dynamodb": {"Keys": {"sk": {"S": ["other"]}}}}, False),
    ],
)
def test_matches(pattern: dict[str, Any], expected: bool) -> None:
    assert matches_filter(pattern, RECORD) is expected


def test_unknown_filter_rule_does_not_match() -> None:
    with pytest.raises(ValueError, match="numeric"):
        matches_filter({"eventName": [{"numeric": [">", 1]}]}, RECORD)
