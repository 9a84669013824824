"""`kho memory`: the messages of conversations, of this machine or of a deployed Kho."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from infra.clients.agent.backend import DEFAULT_TARGET, BackendError, BackendTarget
from infra.clients.agent.managed_server import ManagedServerBackend
from infra.clients.cli.target import exit_with_error
from infra.clients.cli.text_table import format_table

memory: Final = App(name="memory", help="The messages of conversations.")

_TEXT_CHARACTERS: Final = 80


@memory.command
def search(  # noqa: PLR0913 - one argument an option
    query: str = "",
    /,
    *,
    conversation: str = "",
    prefix: str = "",
    subject: str = "",
    limit: Annotated[int, Parameter(validator=Number(gte=1, lte=50))] = 10,
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Find messages by meaning and words. Without a query, list the newest.

    Args:
        query: Words or a question, in any language.
        conversation: Only this conversation.
        prefix: Only conversations whose id begins with this.
        subject: Only conversations of this subject, such as person:17.
        limit: The most messages.
    """
    options = {"query": query, "conversation_id": conversation, "conversation_prefix": prefix, "subject": subject}
    params: dict[str, Any] = {name: value for name, value in options.items() if value} | {"limit": limit}
    backend = ManagedServerBackend(target, ())
    try:
        request = {"jsonrpc": "2.0", "id": 1, "method": "memory-server/memory/search", "params": params}
        found = backend.server().send("/jsonrpc", request, {})
    except BackendError as error:
        exit_with_error(error.explanation)
    finally:
        backend.close()
    if target.as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    messages = found["messages"] + found.get("not_yet_indexed", [])
    columns = ("at", "conversation", "speaker", "score", "message")
    rows = (
        (
            each["at"],
            each["conversation_id"],
            each.get("name", each["role"]),
            str(each.get("score", "-")),
            " ".join(each["content"].split())[:_TEXT_CHARACTERS],
        )
        for each in messages
    )
    print(format_table(columns, rows) if messages else "No message was found.")
    if found.get("degraded"):
        print(found["degraded"])
