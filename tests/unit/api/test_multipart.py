"""Forms as boards and browsers send them."""

from __future__ import annotations

import pytest

from api.multipart import parse_form
from infra.local.simulator.camera import Camera
from shared.rpc.errors import InvalidRequest

TYPE = "multipart/form-data; boundary=----ESP32_CAMERA_BOUNDARY"
CAMERA = Camera(b"\xff\xd8\xff" + bytes(range(256)) * 4 + b"\r\n--\r\n\r\n", "a0:85:e3:f4:49:34", "id")


def firmware_form(question: str) -> bytes:
    return b"".join(CAMERA._form(question))


@pytest.mark.parametrize("question", ["", "Trên bàn có gì?", 'a "quoted"\r\nword', "--", "\r\n\r\n", 'name="file"'])
def test_form_of_the_firmware_is_read_byte_for_byte(question: str) -> None:
    assert parse_form(TYPE, firmware_form(question)) == {"question": question.encode(), "file": CAMERA.photo}


def test_form_of_other_clients_is_read() -> None:
    body = b"preamble\r\n--x \r\ncontent-disposition: form-data; name=file\r\n\r\nphoto\r\n--x--\r\nepilogue"
    assert parse_form('Multipart/Form-Data; charset=utf-8; boundary="x"', body) == {"file": b"photo"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("", b""),
        ("application/json", b"{}"),
        ("multipart/form-data", firmware_form("x")),
        (TYPE, b""),
        (TYPE, firmware_form("x")[:-30]),
        (TYPE, firmware_form("x\r\n------ESP32_CAMERA_BOUNDARY\r\nx")),
        (TYPE, b"------ESP32_CAMERA_BOUNDARY\r\n\r\nnameless\r\n------ESP32_CAMERA_BOUNDARY--\r\n"),
        (TYPE, b"------ESP32_CAMERA_BOUNDARY\r\n\r\n" * 10_000),
    ],
)
def test_malformed_form_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_form(content_type, body)
