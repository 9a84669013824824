"""MCP resources, the prompts about them, and completion of their ids."""

import re
from typing import Any, Final
from urllib.parse import quote, unquote

from api.mcp_errors import protocol_error, unknown_name, with_tool_names
from api.mcp_sdk import (
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
)
from api.mcp_tools import require_first_page
from api.mcp_transport import McpRequestContext
from shared.rpc import cursor as cursors
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, KhoError, NotFound
from shared.rpc.mcp_catalog import McpPrompt, McpResource
from shared.rpc.strict_json import compact, encodable

MAX_COMPLETIONS: Final = 100
_VARIABLE: Final = re.compile(r"\{(\w+)\}")


class McpResources:
    """The resources and prompts of a catalog."""

    def __init__(self, resources: list[McpResource], prompts: list[McpPrompt]) -> None:
        self._resources = resources
        self._listings = [each.listing for each in resources if each.listing]
        self._prompts = {each.name: each for each in prompts}

    def list_resources(
        self, params: PaginatedRequestParams, context: McpRequestContext, revision: str
    ) -> dict[str, Any]:
        """List resources page by page, one server after the other."""
        concrete = [_describe(each) for each in self._resources if not each.is_template]
        if params.cursor is None:
            return self._page(concrete, self._listings[0] if self._listings else "", "", context, revision)
        listing, inner = cursors.decode(params.cursor, str, str)
        if listing not in self._listings:
            raise cursors.stale()
        return self._page([], listing, inner, context, revision)

    def _page(
        self, before: list[dict[str, Any]], listing: str, inner: str, context: McpRequestContext, revision: str
    ) -> dict[str, Any]:
        if not listing:
            return {"resources": before}
        following = _invoke_method(listing, {"cursor": inner} if inner else {}, context, revision)
        page: dict[str, Any] = {"resources": before + following["resources"]}
        later = self._listings[self._listings.index(listing) + 1 :]
        if "nextCursor" in following:
            page["nextCursor"] = cursors.encode(listing, following["nextCursor"])
        elif later:
            page["nextCursor"] = cursors.encode(later[0], "")
        return page

    def list_templates(
        self, params: PaginatedRequestParams, _context: McpRequestContext, _revision: str
    ) -> dict[str, Any]:
        """List the resources' URI templates."""
        require_first_page(params)
        return {"resourceTemplates": [_describe(each) for each in self._resources if each.is_template]}

    def read_resource(
        self, params: ReadResourceRequestParams, context: McpRequestContext, revision: str
    ) -> dict[str, Any]:
        """Return a resource's contents; `_meta.next_cursor` continues one that is too long for one answer."""
        for resource in self._resources:
            match = _pattern(resource).fullmatch(params.uri)
            if match:
                return _read(resource, params.uri, match.groupdict(), context, revision)
        raise no_resource(params.uri)

    def list_prompts(
        self, params: PaginatedRequestParams, _context: McpRequestContext, _revision: str
    ) -> dict[str, Any]:
        """List the prompts."""
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

    def get_prompt(self, params: GetPromptRequestParams, context: McpRequestContext, revision: str) -> dict[str, Any]:
        """Return a prompt with its arguments filled in, and the resource that it is about."""
        prompt = self._find_prompt(params.name, "name")
        arguments = prompt_arguments(prompt, params.arguments or {})
        messages: list[dict[str, Any]] = [_user_message({"type": "text", "text": prompt.text.format_map(arguments)})]
        if prompt.resource:
            resource = next(each for each in self._resources if each.uri == prompt.resource)
            uri = _VARIABLE.sub(lambda variable: quote(arguments[variable[1]], safe=":@"), resource.uri)
            contents = _read(resource, uri, arguments, context, revision)["contents"]
            messages += [_user_message({"type": "resource", "resource": each}) for each in contents]
        return {"description": prompt.description, "messages": messages}

    def complete(self, params: CompleteRequestParams, context: McpRequestContext, revision: str) -> dict[str, Any]:
        """Complete a variable: list its values that begin with what was typed."""
        name = params.argument.name
        uri = self._referenced_uri(params)
        templates = [each for each in self._resources if each.uri == uri and each.listing and f"{{{name}}}" in each.uri]
        if not templates:
            return {"completion": {"values": [], "total": 0, "hasMore": False}}
        query = {"prefix": params.argument.value, "limit": MAX_COMPLETIONS}
        page = _invoke_method(templates[0].listing, query, context, revision)
        matches = (_pattern(templates[0]).fullmatch(each["uri"]) for each in page["resources"])
        values = [unquote(match[name]) for match in matches if match]
        return {"completion": {"values": values, "hasMore": "nextCursor" in page}}

    def _referenced_uri(self, params: CompleteRequestParams) -> str:
        if not isinstance(params.ref, PromptReference):
            return params.ref.uri
        return self._find_prompt(params.ref.name, "ref.name").resource

    def _find_prompt(self, name: str, field: str) -> McpPrompt:
        prompt = self._prompts.get(name)
        if prompt is None:
            raise unknown_name("prompt", name, field)
        return prompt


def _read(
    resource: McpResource, uri: str, variables: dict[str, str], context: McpRequestContext, revision: str
) -> dict[str, Any]:
    entry = catalogue().methods[resource.read]
    if "uri" in entry.fields:
        read = _invoke_method(resource.read, {"uri": uri}, context, revision)
        more = {"_meta": {"next_cursor": read["next_cursor"]}} if "next_cursor" in read else {}
        return {"contents": read["contents"]} | more
    arguments = {name: unquote(value) for name, value in variables.items() if name in entry.fields}
    try:
        result = context.invoke(entry, arguments)["result"]
    except (NotFound, InvalidParams):
        raise no_resource(uri) from None
    except KhoError as error:
        raise protocol_error(with_tool_names(error, entry.server), entry.server, revision) from None
    return {"contents": [{"uri": uri, "mimeType": resource.mime_type, "text": compact(result)}]}


def _invoke_method(method: str, params: dict[str, Any], context: McpRequestContext, revision: str) -> dict[str, Any]:
    entry = catalogue().methods[method]
    try:
        result: dict[str, Any] = context.invoke(entry, params)["result"]
    except KhoError as error:
        if isinstance(error, NotFound) and "uri" in params:
            error.details = error.details | {"uri": params["uri"]}
        raise protocol_error(with_tool_names(error, entry.server), entry.server, revision) from None
    return result


def prompt_arguments(prompt: McpPrompt, arguments: dict[str, str]) -> dict[str, str]:
    """Return all arguments of a prompt. Raise InvalidParams if one is missing or unknown."""
    declared = {each.name: each for each in prompt.arguments}
    unknown = [
        FieldProblem(field=encodable(name), message="is not an argument of this prompt")
        for name in arguments
        if name not in declared
    ]
    missing = [
        FieldProblem(field=each.name, message="is required")
        for each in prompt.arguments
        if each.required and not arguments.get(each.name)
    ]
    if unknown or missing:
        raise InvalidParams(*unknown, *missing)
    return {name: arguments.get(name) or each.default for name, each in declared.items()}


def _describe(resource: McpResource) -> dict[str, Any]:
    return {
        "uriTemplate" if resource.is_template else "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
    }


def _pattern(resource: McpResource) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(resource.uri)))


def _user_message(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def no_resource(uri: str) -> NotFound:
    """Build the error of a URI that no resource has."""
    return NotFound(
        "No resource has this URI.",
        details={"uri": encodable(uri)},
        guidance="resources/list and resources/templates/list show the URIs that exist.",
    )
