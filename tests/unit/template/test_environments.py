"""The environment variables of each function: those that it declares, and no others."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from api.deployment import deployment_of, lambda_function, variables
from infra.deploy.function_resources import declared_functions, environment, variable_values
from infra.local.functions import Functions
from infra.local.template import FILE, FunctionDefinition, load
from shared.platform.config import Config, ConfigurationError, config, function_variables
from shared.rpc.invocation import FunctionCrashed
from tests.helpers.function_variables import variables_of
from tests.helpers.template import TEMPLATE

if TYPE_CHECKING:
    from typing import Any

OF_ALL = set(TEMPLATE["Globals"]["Function"]["Environment"]["Variables"])
OPTIONS = {
    "AUTO_SUMMARY": "true",
    "KHO_EMBEDDER": "bedrock",
    "KHO_MODEL_PROVIDER": "openai",
    "KHO_OIDC_AUDIENCE": "kho",
    "KHO_OIDC_ISSUER": "https://login.example",
    "KHO_RERANKER": "bedrock",
}
"""Options that need another setting."""
READ = """
from shared.platform.config import config
print(config().keep_recent_messages, config().vision_seconds)
print(config().moderators_tenant)
"""


def handler(_event: Any, _context: Any) -> int:
    return config().keep_recent_messages


def test_each_setting_of_a_stack_has_a_value_and_a_function() -> None:
    declared = frozenset[str]().union(*(each.variables or () for each in load().functions.values()))
    assert variable_values().keys() == declared - OF_ALL
    assert {each.variable for each in Config.settings() if not each.local} <= declared
    assert {each.variable for each in Config.settings() if each.local}.isdisjoint(declared)


def test_functions_have_the_variables_that_they_declare() -> None:
    common = OF_ALL | {"KHO_KEY_CALLS_A_MINUTE", "KHO_LIMITS_TABLE", "KHO_TENANT_CALLS_A_MINUTE"}
    expected = {
        "discovery-health": OF_ALL,
        "memory_server-add_message": common | {"KHO_MEMORY_TABLE", "KHO_MESSAGE_INDEX", "KHO_QDRANT_URL"},
        "memory_server-get_context": common | {"KHO_MEMORY_TABLE", "KEEP_RECENT_MESSAGES"},
    }
    assert {name: set(load().functions[name].variables or ()) for name in expected} == expected


def test_a_variable_without_a_value_is_refused_at_generation() -> None:
    with pytest.raises(ValueError, match=r"KHO_NOWHERE: .*base\.yaml"):
        environment([variables("KHO_NOWHERE")])


def test_function_of_one_machine_reads_its_own_variables_alone() -> None:
    def run(*names: str) -> bytes:
        definition = FunctionDefinition("reading", f"{__name__}.handler", 60, frozenset(names))
        functions = Functions({"reading": definition}, threads=1)
        try:
            return functions("reading", b"{}")
        finally:
            functions.close()

    assert run("KEEP_RECENT_MESSAGES") == b"6"
    with pytest.raises(FunctionCrashed):
        run("KHO_MEMORY_TABLE")
    assert function_variables.get() is None


@pytest.mark.parametrize("function", sorted(load().functions))
def test_settings_of_each_function_are_valid_with_options(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of two settings together fails no function that has only one of them."""
    for name in (each.variable for each in Config.settings()):
        monkeypatch.delenv(name, raising=False)
    for name, value in OPTIONS.items():
        if name in (load().functions[function].variables or ()):
            monkeypatch.setenv(name, value)
    with variables_of(function):
        assert Config().auth == "required"


def test_deployed_function_reads_its_own_variables_alone() -> None:
    """A default would hide the operator's value. Settings of one machine keep theirs."""
    given = {"AWS_LAMBDA_FUNCTION_NAME": "kho-x", "KEEP_RECENT_MESSAGES": "7", "PYTHONPATH": str(FILE.parent)}
    done = subprocess.run([sys.executable, "-c", READ], env=given, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["7", "18"]
    assert "ConfigurationError: the function reads KHO_MODERATORS_TENANT" in done.stderr


@pytest.mark.parametrize("variable", ["KHO_PROXY_SECRET_SECRET", "KHO_OIDC_CLIENT_SECRET_SECRET"])
def test_secrets_are_read_by_functions_that_declare_them(variable: str) -> None:
    from shared.aws.secrets_manager import get_secret

    with variables_of("oauth-sign_in"):
        assert get_secret(variable.removesuffix("_SECRET")) == ""
    with variables_of("discovery-health"), pytest.raises(ConfigurationError, match=variable):
        get_secret(variable.removesuffix("_SECRET"))


def test_proxy_is_required_only_by_functions_that_know_its_secret() -> None:
    """A function without the variable would answer requests that come around the proxy."""
    from shared.access.source_address import require_proxy

    with variables_of("discovery-health"), pytest.raises(ConfigurationError, match="KHO_PROXY_SECRET_SECRET"):
        require_proxy({})


def test_declarations_are_kept_at_the_handler() -> None:
    declared = lambda_function(variables("KHO_MODEL"))(lambda _event, _context: None)
    assert deployment_of(declared).uses == (variables("KHO_MODEL"),)
    assert {each.name for each in declared_functions()} == load().functions.keys()
