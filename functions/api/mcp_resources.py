"""MCP's resources, the prompts about them, and completions of their ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from mcp_types import PromptReference

from api.mcp_errors import protocol_error
from api.mcp_tools import require_first_page, require_fitting
from shared.rpc import cursor as cursors
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, KhoError, NotFound
from shared.rpc.invoke import invoke
from shared.rpc.strict_json import compact, encodable

if TYPE_CHECKING:
    from mcp_types import (
        CompleteRequestParams,
        GetPromptRequestParams,
        PaginatedRequestParams,
        ReadResourceRequestParams,
    )

    from api.mcp_transport import McpRequestContext
    from shared.rpc.mcp_catalog import McpPrompt, McpResource

MAX_COMPLETIONS: Final = 100
_VARIABLE: Final = re.compile(r"\{(\w+)\}")


class McpResources:
    """The resources and prompts that are offered."""

    def __init__(self, resources: list[McpResource], prompts: list[McpPrompt]) -> None:
        self._resources = resources
        self._listings = [each.listing for each in resources if each.listing]
        self._prompts = {each.name: each for each in prompts}

    def list_resources(self, params: PaginatedRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
        """Those that exist, one server after the other, page by page."""
        fixed = [_described(each) for each in self._resources if not each.is_template]
        if params.cursor is None:
            return self._page(fixed, self._listings[0] if self._listings else "", "", visit, revision)
        listing, inner = cursors.decode(params.cursor, str, str)
        if listing not in self._listings:
            raise cursors.stale()
        return self._page([], listing, inner, visit, revision)

    def _page(
        self, before: list[dict[str, Any]], listing: str, inner: str, visit: McpRequestContext, revision: str
    ) -> dict[str, Any]:
        if not listing:
            return {"resources": before}
        listed = _invoke_method(listing, {"cursor": inner} if inner else {}, visit, revision)
        page: dict[str, Any] = {"resources": before + listed["resources"]}
        later = self._listings[self._listings.index(listing) + 1 :]
        if "nextCursor" in listed:
            page["nextCursor"] = cursors.encode(listing, listed["nextCursor"])
        elif later:
            page["nextCursor"] = cursors.encode(later[0], "")
        return page

    def list_templates(
        self, params: PaginatedRequestParams, _visit: McpRequestContext, _revision: str
    ) -> dict[str, Any]:
        """The forms that resources' URIs have."""
        require_first_page(params)
        return {"resourceTemplates": [_described(each) for each in self._resources if each.is_template]}

    def read_resource(
        self, params: ReadResourceRequestParams, visit: McpRequestContext, revision: str
    ) -> dict[str, Any]:
        """What a resource holds; where more follows, `_meta.next_cursor` says from where."""
        for resource in self._resources:
            found = _pattern(resource).fullmatch(params.uri)
            if found:
                return _read(resource, params.uri, found.groupdict(), visit, revision)
        raise _no_resource(params.uri)

    def list_prompts(self, params: PaginatedRequestParams, _visit: McpRequestContext, _revision: str) -> dict[str, Any]:
        """The prompts there are."""
        require_first_page(params)
        return {
            "prompts": [
                {
                    "name": each.name,
                    "title": each.title,
                    "description": each.description,
                    "arguments": [
                        {"name": argument.name, "description": argument.description, "required": argument.required}
                        for argument in each.arguments
                    ],
                }
                for each in self._prompts.values()
            ]
        }

    def get_prompt(self, params: GetPromptRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
        """A prompt with its arguments filled in, and the resource that it is about."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            said = f"'{encodable(params.name)}' is not a prompt; prompts/list names them"
            raise InvalidParams(FieldProblem(field="name", message=said))
        given = _arguments(prompt, params.arguments or {})
        messages: list[dict[str, Any]] = [_from_user({"type": "text", "text": prompt.text.format_map(given)})]
        if prompt.resource:
            resource = next(each for each in self._resources if each.uri == prompt.resource)
            uri = _VARIABLE.sub(lambda found: quote(given[found[1]], safe=":@"), resource.uri)
            contents = _read(resource, uri, given, visit, revision)["contents"]
            messages += [_from_user({"type": "resource", "resource": each}) for each in contents]
        return {"description": prompt.description, "messages": messages}

    def complete(self, params: CompleteRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
        """Values of a variable that begin with what is typed."""
        name = params.argument.name
        uri = self._uri_behind(params)
        found = [each for each in self._resources if each.uri == uri and each.listing and f"{{{name}}}" in each.uri]
        if not found:
            return {"completion": {"values": [], "total": 0, "hasMore": False}}
        asked = {"prefix": params.argument.value, "limit": MAX_COMPLETIONS}
        listed = _invoke_method(found[0].listing, asked, visit, revision)
        matches = (_pattern(found[0]).fullmatch(each["uri"]) for each in listed["resources"])
        values = [unquote(match[name]) for match in matches if match]
        return {"completion": {"values": values, "hasMore": "nextCursor" in listed}}

    def _uri_behind(self, params: CompleteRequestParams) -> str:
        if not isinstance(params.ref, PromptReference):
            return params.ref.uri
        prompt = self._prompts.get(params.ref.name)
        if prompt is None:
            said = f"'{encodable(params.ref.name)}' is not a prompt; prompts/list names them"
            raise InvalidParams(FieldProblem(field="ref.name", message=said))
        return prompt.resource


def _read(
    resource: McpResource, uri: str, variables: dict[str, str], visit: McpRequestContext, revision: str
) -> dict[str, Any]:
    entry = catalogue().methods[resource.read]
    if "uri" in entry.fields:
        read = _invoke_method(resource.read, {"uri": uri}, visit, revision)
        more = {"_meta": {"next_cursor": read["next_cursor"]}} if "next_cursor" in read else {}
        return require_fitting({"contents": read["contents"]} | more)
    given = {name: unquote(value) for name, value in variables.items() if name in entry.fields}
    try:
        result = invoke(entry.function, entry.name, given, visit.caller, visit.correlation_id)
    except (NotFound, InvalidParams):
        raise _no_resource(uri) from None
    except KhoError as error:
        raise protocol_error(error, entry.server, revision) from None
    return require_fitting({"contents": [{"uri": uri, "mimeType": resource.mime_type, "text": compact(result)}]})


def _invoke_method(method: str, params: dict[str, Any], visit: McpRequestContext, revision: str) -> dict[str, Any]:
    entry = catalogue().methods[method]
    try:
        result: dict[str, Any] = invoke(entry.function, entry.name, params, visit.caller, visit.correlation_id)
    except KhoError as error:
        if isinstance(error, NotFound) and "uri" in params:
            error.details = error.details | {"uri": params["uri"]}
        raise protocol_error(error, entry.server, revision) from None
    return result


def _arguments(prompt: McpPrompt, given: dict[str, str]) -> dict[str, str]:
    known = {each.name: each for each in prompt.arguments}
    unknown = [
        FieldProblem(field=encodable(name), message="is not an argument of this prompt")
        for name in given
        if name not in known
    ]
    missing = [
        FieldProblem(field=each.name, message="is required")
        for each in prompt.arguments
        if each.required and not given.get(each.name)
    ]
    if unknown or missing:
        raise InvalidParams(*unknown, *missing)
    return {name: given.get(name) or each.default for name, each in known.items()}


def _described(resource: McpResource) -> dict[str, Any]:
    return {
        "uriTemplate" if resource.is_template else "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
    }


def _pattern(resource: McpResource) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(resource.uri)))


def _from_user(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _no_resource(uri: str) -> NotFound:
    return NotFound(
        "No resource has this URI.",
        details={"uri": encodable(uri)},
        guidance="resources/list and resources/templates/list show the URIs that exist.",
    )
