"""Forms of the type multipart/form-data."""

import re
from typing import Final

from shared.rpc.errors import InvalidRequest

_TYPE: Final = "multipart/form-data"
_MAX_TYPE_CHARACTERS: Final = 1024
_MAX_BOUNDARY_CHARACTERS: Final = 70
"""The limit of RFC 2046."""
_MAX_PARTS: Final = 20
_MAX_HEAD_BYTES: Final = 2048
_MAX_HEAD_LINES: Final = 8
_PARAMETER: Final = re.compile(r';[ \t]*([^\s;="]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """Return the contents of a form's parts by their names. Raise InvalidRequest if the form is malformed.

    A part may contain any bytes but the boundary. Its head and the number of parts are limited.
    """
    boundary = _boundary(content_type)
    delimiter = f"\r\n--{boundary}".encode("latin-1", "replace")
    _, *sections = (b"\r\n" + body).split(delimiter, _MAX_PARTS + 1)
    if not sections or not sections[-1].startswith(b"--"):
        raise InvalidRequest(
            f"The form has no end, more than {_MAX_PARTS} parts, or a part that contains its boundary."
        )
    return dict(_part(each) for each in sections[:-1])


def _boundary(content_type: str) -> str:
    is_form = content_type[:_MAX_TYPE_CHARACTERS].partition(";")[0].strip().lower() == _TYPE
    boundary = _parameter(content_type, "boundary") if is_form and len(content_type) <= _MAX_TYPE_CHARACTERS else ""
    if not boundary or len(boundary) > _MAX_BOUNDARY_CHARACTERS:
        raise InvalidRequest(
            f"Content-Type must be {_TYPE} with a boundary of at most {_MAX_BOUNDARY_CHARACTERS} characters."
        )
    return boundary


def _part(section: bytes) -> tuple[str, bytes]:
    """Return the name and the content of a part."""
    padding, _, rest = section.partition(b"\r\n")
    end = rest.find(b"\r\n\r\n", 0, _MAX_HEAD_BYTES)
    lines = rest[: max(end, 0)].decode("utf-8", "replace").split("\r\n")
    fields = (line.partition(":") for line in lines[:_MAX_HEAD_LINES])
    dispositions = (value for field, _, value in fields if field.strip().lower() == "content-disposition")
    name = _parameter(next(dispositions, ""), "name")
    if padding.strip() or name is None or len(lines) > _MAX_HEAD_LINES:
        raise InvalidRequest(
            f"A part of the form has no name, a head of more than {_MAX_HEAD_BYTES} bytes or {_MAX_HEAD_LINES} lines, "
            "or contains the boundary."
        )
    return name, rest[end + 4 :]


def _parameter(header: str, name: str) -> str | None:
    """Return the value of a header's parameter. Its time grows with the header's length alone."""
    for match in _PARAMETER.finditer(header):
        if match[1].lower() == name:
            return match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
    return None
