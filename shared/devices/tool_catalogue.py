"""Tool catalogues: parsing, storage, and the aliases that models use."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
import zlib
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Keys, Write
from shared.devices import keys
from shared.devices.firmware_tools import correct_schema
from shared.devices.schema_size import require_small
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.aws.dynamodb import Item, Table
    from shared.devices.sessions import DeviceSession

_MAX_NAME: Final = 200
_MAX_ALIAS: Final = 40
_PART_BYTES: Final = 350_000
_MAX_PARTS: Final = 10
_STORED_FIELDS: Final = ("tools", "complete", "problem", "with_user_tools", "read_at", "handshake")
_INVALID_ALIAS_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_-]")
_LETTER: Final = re.compile(r"[A-Z ]+ (?:LETTER|SYLLABLE) (?:SMALL )?([A-Z]+)")


@dataclass(frozen=True)
class DeviceTool:
    """One tool, as the device describes it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any] = field(default_factory=dict)
    user_only: bool = False
    """True for tools that the device lists only for its owner, such as a restart."""

    @cached_property
    def schema_size(self) -> int:
        """The size of the input schema. Raise UnboundedSchemaError if it is larger than that of any board."""
        return require_small(self.input_schema)


@dataclass(frozen=True)
class ToolCatalogue:
    """The tools of a device in one session, with the name and firmware version that it reported."""

    name: str
    version: str
    tools: tuple[DeviceTool, ...]
    complete: bool = True
    problem: str = ""
    """The reason why the catalogue may be incomplete."""
    with_user_tools: bool = False
    read_at: float = 0.0
    handshake: str = ""
    """The handshake of the session in which the list was read."""

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The alias of each tool, by the tool's own name."""
        return aliases(tool.name for tool in self.tools)

    @cached_property
    def _by_name(self) -> dict[str, DeviceTool]:
        by_alias = {self.aliases[tool.name]: tool for tool in self.tools}
        return by_alias | {tool.name: tool for tool in self.tools}

    def find(self, name: str) -> DeviceTool | None:
        """Return the tool of this name or alias."""
        return self._by_name.get(name)


def aliases(names: Iterable[str]) -> dict[str, str]:
    """Return a unique alias for each name, independent of their order.

    With their own prefixes, models' interfaces take 40 more ASCII letters, digits, '_' and '-', a letter first.
    """
    plain = {name: _plain_alias(name) for name in names}
    frequencies: dict[str, int] = {}
    for alias in plain.values():
        frequencies[alias] = frequencies.get(alias, 0) + 1
    return {
        name: alias if frequencies[alias] == 1 or alias == name else _disambiguate(name, alias)
        for name, alias in plain.items()
    }


def _plain_alias(name: str) -> str:
    alias = _INVALID_ALIAS_CHARACTERS.sub("_", "".join(map(_transliterate, name[:_MAX_NAME])))
    return (alias if alias[:1].isalpha() else f"tool_{alias.lstrip('_-')}")[:_MAX_ALIAS]


def _transliterate(character: str) -> str:
    """Return a character in ASCII: without accents, or by the letter's name, or an ideograph by its code."""
    if character.isascii():
        return character
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    if plain or not character.isalpha():
        return plain
    name = unicodedata.name(character, "")
    letter = _LETTER.match(name)
    return letter[1].lower() if letter else f"u{ord(character):x}"


def _disambiguate(name: str, alias: str) -> str:
    suffix = hashlib.sha256(name.encode("utf-8")).hexdigest()[:12]
    return f"{alias[: _MAX_ALIAS - 13]}_{suffix}"


def parse_tool(description: Any) -> DeviceTool | None:
    """Parse a device's description of a tool. Return None if it has no valid name."""
    name = description.get("name") if isinstance(description, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        return None
    text, schema = description.get("description"), description.get("inputSchema")
    annotations = description.get("annotations")
    return DeviceTool(
        name=name,
        description=text if isinstance(text, str) else "",
        input_schema=correct_schema(name, schema if isinstance(schema, dict) else {"type": "object"}),
        annotations=annotations if isinstance(annotations, dict) else {},
    )


def unlisted_tool(name: str) -> DeviceTool:
    """Return a tool of which only the name is known; the device itself validates its arguments."""
    return DeviceTool(name, "", correct_schema(name, {"type": "object"}))


class CatalogueStore:
    """The catalogues of one device, the latest of each name and firmware version."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._partition = keys.device(tenant_id, device_id)

    def exists(self, session: DeviceSession) -> bool:
        """Return True if a catalogue of the session's firmware is stored, of this session or of an older one."""
        prefix = keys.catalogue(session.name, session.version)
        return any(self._table.query(self._partition, Keys.beginning(prefix), fields=("sk",), limit=1))

    def find(self, session: DeviceSession) -> ToolCatalogue | None:
        """Return the catalogue that was read in this session. An older one may be of other firmware."""
        prefix = keys.catalogue(session.name, session.version)
        parts = [item for page in self._table.query(self._partition, Keys.beginning(prefix)) for item in page]
        # A write may have been interrupted, or another one may be in progress.
        if not parts or len(parts) < parts[0]["parts"] or len({part["reading"] for part in parts}) > 1:
            return None
        data = b"".join(bytes(part["tools"]) for part in parts)
        stored = json.loads(zlib.decompress(data))
        tools = tuple(DeviceTool(**tool) for tool in stored.pop("tools"))
        catalogue = ToolCatalogue(session.name, session.version, tools, **stored)
        return catalogue if catalogue.handshake == session.handshake else None

    def put(self, catalogue: ToolCatalogue) -> None:
        """Replace the stored catalogue. An empty or oversized one is not stored."""
        fields = asdict(catalogue)
        text = compact({name: fields[name] for name in _STORED_FIELDS})
        data = zlib.compress(text.encode("utf-8"))
        chunks = [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]
        if not catalogue.tools or len(chunks) > _MAX_PARTS:
            return
        prefix = keys.catalogue(catalogue.name, catalogue.version)
        stored_keys = [
            item["sk"] for page in self._table.query(self._partition, Keys.beginning(prefix)) for item in page
        ]
        reading = secrets.token_hex(8)
        items: list[Item] = [
            {"pk": self._partition, "sk": f"{prefix}{number:02d}", "reading": reading, "tools": chunk}
            for number, chunk in enumerate(chunks)
        ]
        for item in items:
            self._table.write(Write("Put", item | {"parts": len(chunks)}))
        obsolete = set(stored_keys) - {item["sk"] for item in items}
        self._table.delete_all((self._partition, sk) for sk in obsolete)
