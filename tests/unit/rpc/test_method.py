"""Parameters that many methods have."""

from __future__ import annotations

import pytest

from agent_data.writes import DocumentWriteParams, WriteParams
from shared.rpc.errors import InvalidParams
from shared.rpc.method import read


@pytest.mark.parametrize("request_id", ["x", "!", "~", "x" * 128])
def test_request_id_has_1_to_128_visible_characters(request_id: str) -> None:
    assert read(WriteParams, {"request_id": request_id}).request_id == request_id


@pytest.mark.parametrize("request_id", ["", "x" * 129, " ", "a b", "é", "\x7f", "a\n", 1])
def test_other_request_ids_are_refused(request_id: object) -> None:
    with pytest.raises(InvalidParams) as refused:
        read(WriteParams, {"request_id": request_id})
    assert [each["field"] for each in refused.value.details] == ["request_id"]


def test_null_of_a_required_parameter_is_no_omission() -> None:
    for body, message in (({"document_id": None}, "should be a valid string"), ({}, "is required")):
        with pytest.raises(InvalidParams) as refused:
            read(DocumentWriteParams, body)
        assert refused.value.details == [{"field": "document_id", "message": message}]
