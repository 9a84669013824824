"""Methods that `kho serve` alone has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.methods import add_methods
from infra.local.template import load
from shared.rpc import catalogue as catalogues
from shared.rpc.catalogue import MethodCatalogue

if TYPE_CHECKING:
    import pytest

SIMULATE = "device-server/devices/simulate"


def test_method_of_one_machine_is_not_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template and its catalogue have no method of one machine; `kho serve` adds it to both."""
    deployed = catalogues.catalogue()
    assert SIMULATE not in deployed.methods
    own = MethodCatalogue(deployed.servers, dict(deployed.methods))
    monkeypatch.setattr("infra.local.methods.catalogue", lambda: own)
    template = add_methods(load())
    added = own.methods[SIMULATE]
    assert added.function not in load().functions
    assert f"/{SIMULATE}" not in {route.path for route in load().routes}
    assert template.functions[added.function].handler == "infra.local.methods.devices_simulate.handler"
    assert [route.authorized for route in template.routes if route.path == f"/{SIMULATE}"] == [True]
