"""Forms of the type multipart/form-data."""

from __future__ import annotations

from email.message import Message
from typing import Final

from shared.rpc.errors import InvalidRequest

_MAX_PARTS: Final = 20


def parse_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """Return the contents of a form's parts by their names. Raise InvalidRequest if the form is malformed.

    A part may contain any bytes but the boundary.
    """
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or not boundary:
        raise InvalidRequest("Content-Type must be multipart/form-data with a boundary.")
    delimiter = f"\r\n--{boundary}".encode("latin-1", "replace")
    _, *sections = (b"\r\n" + body).split(delimiter, _MAX_PARTS)
    if not sections or not sections[-1].startswith(b"--"):
        raise InvalidRequest("The form has no end, or its boundary occurs in a part.")
    return dict(_part(each) for each in sections[:-1])


def _part(section: bytes) -> tuple[str, bytes]:
    """Return the name and the content of a part."""
    padding, _, rest = section.partition(b"\r\n")
    lines, separator, content = rest.partition(b"\r\n\r\n")
    part = Message()
    for line in lines.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        part[name.strip()] = value.strip()
    title = part.get_param("name", header="content-disposition")
    if padding.strip() or not separator or not isinstance(title, str):
        raise InvalidRequest("A part of the form has no name, or the boundary occurs in a part.")
    return title, content
