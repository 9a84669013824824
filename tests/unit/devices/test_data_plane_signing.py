"""Requests to IoT Core's data plane are signed as botocore signs them: a query, ids with escaped characters."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from shared.aws.signed_client import Credentials, SignedServiceClient

KEY = ("AKIDEXAMPLE", "secret", "token")


@pytest.mark.parametrize("client_id", ["esp32-1", "a b:1", "đèn", "100%"])
@pytest.mark.parametrize(("method", "query"), [("POST", "topic=devices%2Fa%20b%3A1%2Fdown"), ("GET", "")])
def test_signature_equals_botocores(client_id: str, method: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    url = "https://prefix-ats.iot.eu-west-1.amazonaws.com"
    service = SignedServiceClient("iotdata", connect_seconds=1, read_seconds=1, url=url)
    path = f"/connections/{quote(client_id, safe='')}/messages"
    at = datetime.now(UTC).replace(microsecond=0)
    signed = service.sign(path, b"\0message", {}, Credentials(*KEY), at, method=method, query=query)
    request = AWSRequest(method=method, url=f"{url}{path}?{query}" if query else url + path, data=b"\0message")
    with patch("botocore.auth.get_current_datetime", lambda: at.replace(tzinfo=None)):
        SigV4Auth(BotocoreCredentials(*KEY), "iotdata", "eu-west-1").add_auth(request)
    assert signed["authorization"] == request.headers["Authorization"]
