"""Every policy is measured: a new function needs a scenario."""

from __future__ import annotations

from shared.rpc.catalogue import catalogue
from tests.helpers.measured_policies import MEASURED
from tests.helpers.template import BY_NAME, table_actions
from tests.integration.devices import test_iam_policies
from tests.integration.iam import test_oauth_policies, test_policies, test_recall_kit_policies

MEASURING = (test_policies, test_recall_kit_policies, test_oauth_policies, test_iam_policies)
"""On import, they record in MEASURED the functions that they measure."""


def test_every_method_and_every_table_user_is_measured() -> None:
    methods = {entry.function for entry in catalogue().methods.values()}
    functions = methods | {name for name in BY_NAME if table_actions(name)}
    assert (functions - MEASURED, MEASURED - functions) == (set(), set())
