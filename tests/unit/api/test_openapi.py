"""The OpenAPI document."""

from __future__ import annotations

import pytest

from discovery import openapi
from shared.rpc.catalogue import catalogue
from tests.helpers.settings import changed_settings


@pytest.mark.parametrize(("auth", "required"), [("required", True), ("open", False)])
def test_credentials_are_described_as_the_server_requires_them(
    auth: str, required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = changed_settings(auth=auth)
    monkeypatch.setattr(openapi, "config", lambda: settings)
    described = openapi.document.__wrapped__()
    assert ({} not in described["security"]) == required
    methods = catalogue().methods
    open_to_all = {name for name in methods if described["paths"][f"/{name}"]["post"].get("security") == []}
    assert open_to_all == {name for name, entry in methods.items() if entry.anonymous}
    assert {} in described["paths"]["/jsonrpc"]["post"]["security"], "it reaches anonymous methods too"
