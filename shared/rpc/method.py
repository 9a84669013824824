"""Methods: typed parameters in, a typed result or a named error out, independent of envelopes."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.field_messages import message_of, worded
from shared.rpc.strict_json import encodable
from shared.rpc.unknown_fields import many_unknown_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

    from shared.rpc.caller import Caller, Role
    from shared.rpc.errors import KhoError
    from shared.rpc.mcp_catalog import McpTool


_MAX_PROBLEMS: Final = 50
_MAX_FIELD_NAME: Final = 200


class Params(BaseModel):
    """Base class of every method's parameters: strict types, no unknown fields, null for an optional field omits it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _omit_nulls(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        problem = many_unknown_fields(raw, cls.model_fields) if cls.model_config.get("extra") == "forbid" else None
        if problem:
            raise PydanticCustomError("many_unknown_fields", "{problem}", {"problem": problem})  # instead of one each
        omitted = {name for name in _without_null(cls) if name in raw and raw[name] is None}
        return {name: value for name, value in raw.items() if name not in omitted} if omitted else raw

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe null as a value of each optional field."""
        described = handler(core_schema)
        properties = handler.resolve_ref_schema(described).get("properties", {})
        for name in _without_null(cls):
            properties[name] = _or_null(properties[name])
        return described

    def listing(self, method: str) -> tuple[str, dict[str, Any]]:
        """Return the list to which a cursor of `method` belongs: the method that reads it, and its filters."""
        return method, self.model_dump(mode="json", exclude={"limit", "cursor"})

    @classmethod
    def to_error(cls, *problems: FieldProblem) -> InvalidParams:
        """Return the error with these problems."""
        return InvalidParams(*problems)


@cache
def _without_null(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the optional fields whose type has no null."""
    return tuple(
        name
        for name, field in model.model_fields.items()
        if not field.is_required() and type(None) not in get_args(field.annotation)
    )


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    outside = {name: value for name, value in schema.items() if name in ("title", "default", "description", "examples")}
    inside = {name: value for name, value in schema.items() if name not in outside}
    return {"anyOf": [inside, {"type": "null"}], **outside}


OpenObject = dict[str, Any]
"""A JSON object whose fields the contract leaves open."""


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Reads 7.0 as 7: JSON does not distinguish them."""
RequestId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=worded(r"^[!-~]+$", "visible ASCII characters"),
        examples=["3f0c1a52-8a77-4ab1-9d35-6f1f3b1e0c11"],
    ),
]
"""An idempotency key: a request that is sent again with the same one is done once."""

P = TypeVar("P", bound=Params)
R = TypeVar("R")


class Method(Generic[P, R]):
    """One method of the contract: its function, models, role and errors."""

    def __init__(  # noqa: PLR0913 - each is a fact of the method
        self,
        run: Callable[[P, Caller], R],
        name: str,
        role: Role,
        errors: tuple[type[KhoError], ...],
        *,
        anonymous: bool,
        tool: McpTool | None,
    ) -> None:
        self.run, self.name, self.role, self.errors = run, name, role, errors
        self.anonymous, self.tool = anonymous, tool
        self.summary = (inspect.getdoc(inspect.getmodule(run)) or "").partition(": ")[2].strip()
        hints = get_type_hints(run, include_extras=True)
        self.params: type[P] = hints[next(iter(inspect.signature(run).parameters))]
        self.result: TypeAdapter[R] = TypeAdapter(hints["return"])

    def params_of(self, raw: Any, caller: Caller) -> P:
        """Check the caller's role, and read the parameters."""
        if not self.anonymous:
            caller.require(self.role)
        return read(self.params, raw)

    def as_json(self, result: R) -> str:
        """Return the result as JSON without null fields."""
        return self.result.dump_json(result, exclude_none=True).decode()

    def as_object(self, result: R) -> Any:
        """Return the result as plain JSON values without null fields."""
        return self.result.dump_python(result, mode="json", exclude_none=True)


def read(model: type[P], raw: Any) -> P:
    """Return `raw` as typed parameters. Raise InvalidParams with each wrong field."""
    if not isinstance(raw, dict):
        raise model.to_error(FieldProblem(field="params", message="must be a JSON object"))
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise model.to_error(*field_problems(error)) from None


def field_problems(error: ValidationError, *inside: str) -> list[FieldProblem]:
    """Return the problem of each field; `inside` is the path of the enclosing field."""
    errors = error.errors(include_url=False, include_input=False)
    problems = [
        _problem((*inside, *each["loc"]), message_of(each["type"], each["msg"], each.get("ctx", {})))
        for each in errors[:_MAX_PROBLEMS]
    ]
    if len(errors) > len(problems):
        problems.append(FieldProblem(field="params", message=f"have {len(errors) - len(problems)} more problems"))
    return problems


def _problem(location: tuple[int | str, ...], message: str) -> FieldProblem:
    path = encodable(".".join(str(part) for part in location))[:_MAX_FIELD_NAME] or "params"
    return FieldProblem(field=path, message=encodable(message))
