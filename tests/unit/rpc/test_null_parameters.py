"""null counts as omitted wherever a parameter is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from infra.deploy.generate import _all_handlers
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import InvalidParams
from shared.rpc.method import Params, read

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = sorted(catalogue().methods)
MODELS = {handler.method.name: handler.method.params for handler in _all_handlers().values()}


def fields_of(schema: dict[str, Any], definitions: dict[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield path and schema of each optional parameter, those inside other parameters, but not in open objects."""
    for each in (schema, *schema.get("anyOf", [])):
        declared = definitions[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        closed = declared.get("additionalProperties") is False
        for name, field in declared["properties"].items() if closed else ():
            if name not in declared.get("required", []):
                yield (*path, name), field
            yield from fields_of(field, definitions, *path, name)


@pytest.mark.parametrize("method", METHODS)
def test_null_omits_an_optional_parameter(method: str) -> None:
    schema = MODELS[method].model_json_schema()
    definitions = schema.get("$defs", {})
    for path, field in fields_of(schema, definitions):
        assert jsonschema_rs.validator_for(field | {"$defs": definitions}).is_valid(None), path
        body: Any = None
        for name in reversed(path):
            body = {name: body}
        assert ".".join(path) not in problems(MODELS[method], body)


def problems(model: type[Params], body: Any) -> list[str]:
    """Return the names of the fields with a problem."""
    try:
        read(model, body)
    except InvalidParams as error:
        return [each["field"] for each in error.details]
    return []


def test_null_stays_a_problem_of_a_required_parameter() -> None:
    with pytest.raises(InvalidParams) as refused:
        read(MODELS["memory-server/memory/get_context"], {"conversation_id": None})
    assert [each["field"] for each in refused.value.details] == ["conversation_id"]
    assert problems(MODELS["memory-server/memory/get_context"], {"surprise": None}) == ["conversation_id", "surprise"]
