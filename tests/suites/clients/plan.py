"""The fixed plan of calls that each client makes, and the texts that its model has to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

LAMP: Final = "lamp"
OFFLINE: Final = "porch"
"""A device that has connected, and is gone."""
_BODY: Final = {"mime_type": "text/plain", "body": "Ferns are watered at dawn."}
_MORE_THAN_A_MESSAGE: Final = 140_000
_UNCHANGED: Final = "Correct these fields and call again; nothing was changed."


@dataclass(frozen=True, slots=True)
class Call:
    """A planned call, and the words of its result's text: of a failure, the field, the reason, what to do."""

    label: str
    tool: str
    arguments: dict[str, Any]
    words: tuple[str, ...]
    fails: bool = False


def _failure(label: str, tool: str, arguments: dict[str, Any], *words: str) -> Call:
    return Call(label, tool, arguments, words, fails=True)


def planned(run: str) -> tuple[Call, ...]:
    """Return the calls of a run, whose documents are apart from those of other runs."""
    document = f"ferns-{run}"
    volume = {"device_id": LAMP, "name": "self.audio_speaker.set_volume", "arguments": {"volume": 40}}
    return (
        Call("a new document", "create_document", _new(document), (document,)),
        Call("a question", "query_knowledge", {"query": "When are ferns watered?"}, (_BODY["body"],)),
        Call("a message", "memory_add_message", {"conversation_id": run, "role": "user", "content": "hi"},
             ("success",)),
        Call("a device's `true`", "device_tools_call", volume, ("true",)),
        _failure("a wrong value", "create_document", _new("bad id!"),
                 "INVALID_PARAMS", "document_id", "should be letters, digits and", _UNCHANGED),
        _failure("an unknown argument", "create_document", _new(f"{run}-2", titel="Ferns"),
                 "INVALID_PARAMS", "titel", "is not a field of this method", _UNCHANGED),
        _failure("an unknown id", "get_document", {"document_id": "nope"},
                 "NOT_FOUND", "Document not found: nope", "list_children shows the documents that exist"),
        _failure("a conflict", "update_document",
                 {"document_id": document, "patch": {"metadata": {"title": "Moss"}}, "last_known_revision": 7},
                 "CONFLICT", "is at revision 1, not at 7", "Read the document"),
        _failure("another tenant", "query_knowledge", {"query": "ferns", "filters": {"tenant_id": "acme"}},
                 "NOT_ALLOWED", "filters.tenant_id", "is not the caller's tenant", "Omit it"),
        _failure("too large", "device_tools_call", _on(LAMP, "self.test.echo", text="x" * _MORE_THAN_A_MESSAGE),
                 "TOO_LARGE", "128 KiB", "Send or ask for less"),
        _failure("a device's failure", "device_tools_call", _on(LAMP, "self.test.fail"),
                 "DEVICE_ERROR", "the sensor says", "it refused the call or it failed", "device_tools_list"),
        _failure("a device that is offline", "device_tools_call", volume | {"device_id": OFFLINE},
                 "DEVICE_OFFLINE", "is not connected", "reconnects by itself once it has power"),
    )  # fmt: skip


def _new(document_id: str, **more: Any) -> dict[str, Any]:
    return {"document_id": document_id, "parent_id": "root", "content": _BODY, "metadata": {}, **more}


def _on(device_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"device_id": device_id, "name": name, "arguments": arguments}
