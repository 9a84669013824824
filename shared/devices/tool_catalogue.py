"""The tools of a device: as it lists them, as they are kept, and what models can call them."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import zlib
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from shared.devices import keys
from shared.dynamodb import Keys, Write
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.dynamodb import Item, Table

_MAX_NAME: Final = 200
_MAX_ALIAS: Final = 64
_PART_BYTES: Final = 350_000
_MAX_PARTS: Final = 10
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class DeviceTool:
    """One tool, in the device's words."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any] = field(default_factory=dict)
    user_only: bool = False
    """Whether the device lists it for its owner alone, such as a restart."""


@dataclass(frozen=True)
class ToolCatalogue:
    """The tools of a device of one name and firmware version."""

    name: str
    version: str
    tools: tuple[DeviceTool, ...]
    complete: bool = True
    problem: str = ""
    """Why there may be more tools than these."""
    with_user_tools: bool = False
    read_at: float = 0.0

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What a model calls each tool, by the tool's own name."""
        return aliases(tool.name for tool in self.tools)

    @cached_property
    def _found(self) -> dict[str, DeviceTool]:
        by_alias = {self.aliases[tool.name]: tool for tool in self.tools}
        return by_alias | {tool.name: tool for tool in self.tools}

    def find(self, name: str) -> DeviceTool | None:
        """The tool of this name, its own or the one that models call it by."""
        return self._found.get(name)


def aliases(names: Iterable[str]) -> dict[str, str]:
    """A name of letters, digits, '_' and '-' for each, at most 64 long; no two have the same, whatever their order."""
    plain = {name: _NOT_IN_NAMES.sub("_", name)[:_MAX_ALIAS] for name in names}
    wanted: dict[str, int] = {}
    for alias in plain.values():
        wanted[alias] = wanted.get(alias, 0) + 1
    return {
        name: alias if wanted[alias] == 1 or alias == name else _disambiguate(name, alias)
        for name, alias in plain.items()
    }


def _disambiguate(name: str, alias: str) -> str:
    mark = hashlib.sha256(name.encode("utf-8")).hexdigest()[:12]
    return f"{alias[: _MAX_ALIAS - 13]}_{mark}"


def parse_tool(described: Any) -> DeviceTool | None:
    """A tool as a device describes it, None where it is not described at all."""
    name = described.get("name") if isinstance(described, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        return None
    about, schema = described.get("description"), described.get("inputSchema")
    annotations = described.get("annotations")
    return DeviceTool(
        name=name,
        description=about if isinstance(about, str) else "",
        input_schema=schema if isinstance(schema, dict) else {"type": "object"},
        annotations=annotations if isinstance(annotations, dict) else {},
    )


class CatalogueStore:
    """The catalogues of one device, one for each name and version that it has had."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._partition = keys.device(tenant_id, device_id)

    def find(self, name: str, version: str) -> ToolCatalogue | None:
        """What was read of a device of this name and version."""
        prefix = keys.catalogue(name, version)
        parts = [item for page in self._table.query(self._partition, Keys.beginning(prefix)) for item in page]
        # Whoever wrote them may have been stopped in between, or another may just be writing.
        if not parts or len(parts) < parts[0]["parts"] or len({part["reading"] for part in parts}) > 1:
            return None
        whole = b"".join(bytes(part["tools"]) for part in parts)
        kept = json.loads(zlib.decompress(whole))
        tools = tuple(DeviceTool(**tool) for tool in kept.pop("tools"))
        return ToolCatalogue(name, version, tools, **kept)

    def keep(self, catalogue: ToolCatalogue) -> None:
        """Keep a catalogue in place of what was read before, unless it has no tool or would be too large."""
        kept = asdict(catalogue)
        text = compact({name: kept[name] for name in ("tools", "complete", "problem", "with_user_tools", "read_at")})
        data = zlib.compress(text.encode("utf-8"))
        chunks = [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]
        if not catalogue.tools or len(chunks) > _MAX_PARTS:
            return
        prefix = keys.catalogue(catalogue.name, catalogue.version)
        before = [item["sk"] for page in self._table.query(self._partition, Keys.beginning(prefix)) for item in page]
        reading = secrets.token_hex(8)
        written: list[Item] = [
            {"pk": self._partition, "sk": f"{prefix}{number:02d}", "reading": reading, "tools": chunk}
            for number, chunk in enumerate(chunks)
        ]
        for item in written:
            self._table.write(Write("Put", item | {"parts": len(chunks)}))
        left = set(before) - {item["sk"] for item in written}
        self._table.delete_all((self._partition, sk) for sk in left)
