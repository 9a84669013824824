"""Forms as boards and browsers send them."""

from __future__ import annotations

import httpx
import pytest
import urllib3

from api.multipart import parse_form
from infra.local.iot.simulator.camera import Camera
from shared.rpc.errors import InvalidRequest

TYPE = "multipart/form-data; boundary=----ESP32_CAMERA_BOUNDARY"
CAMERA = Camera(b"\xff\xd8\xff" + bytes(range(256)) * 4 + b"\r\n--\r\n\r\n", "a0:85:e3:f4:49:34", "id")


def firmware_form(question: str) -> bytes:
    return b"".join(CAMERA._form(question))


@pytest.mark.parametrize("question", ["", "Trên bàn có gì?", 'a "quoted"\r\nword', "--", "\r\n\r\n", 'name="file"'])
def test_form_of_the_firmware_is_read_byte_for_byte(question: str) -> None:
    assert parse_form(TYPE, firmware_form(question)) == {"question": question.encode(), "file": CAMERA.photo}


def form(*parts: bytes) -> bytes:
    """Return a form with the boundary `x`, whose parts have these heads."""
    return b"".join(b"--x\r\n" + head + b"\r\n\r\nphoto\r\n" for head in parts) + b"--x--\r\n"


def test_form_of_other_clients_is_read() -> None:
    body = b"preamble\r\n--x \r\ncontent-disposition: form-data; name=file\r\n\r\nphoto\r\n--x--\r\nepilogue"
    assert parse_form('Multipart/Form-Data; charset=utf-8; boundary="x"', body) == {"file": b"photo"}


FILE_NAMES = ["camera.jpg", 'a"b;c.jpg', "back\\slash\\", "ảnh chụp.jpg", "; name=question"]


@pytest.mark.parametrize("file_name", FILE_NAMES)
def test_forms_of_libraries_are_read(file_name: str) -> None:
    question, photo = 'Có "gì"?', (file_name, CAMERA.photo, "image/jpeg")
    body, content_type = urllib3.encode_multipart_formdata([("question", question), ("file", photo)])
    expected = {"question": question.encode(), "file": CAMERA.photo}
    assert parse_form(content_type, body) == expected
    request = httpx.Request("POST", "http://kho.example", data={"question": question}, files={"file": photo})
    assert parse_form(request.headers["content-type"], request.read()) == expected


@pytest.mark.parametrize(
    "disposition",
    [
        'form-data; name="file"; filename="camera.jpg"',
        'form-data;name="file";filename="a%22b.jpg"',
        'form-data; filename="; name=\\"other\\"; x"; name="file"',
        "form-data; NAME = file ; filename=a",
        'form-data; name="fi\\le"; filename="C:\\photos\\"',
        "form-data; name=\"file\"; filename*=UTF-8''%e1%ba%a3nh.jpg",
    ],
    ids=range(6),
)
def test_name_of_a_part_is_read_as_clients_write_it(disposition: str) -> None:
    head = f"Content-Type: image/jpeg\r\nContent-Disposition: {disposition}"
    assert parse_form("multipart/form-data; boundary=x", form(head.encode())) == {"file": b"photo"}


NAMED = b'Content-Disposition: form-data; name="file"'


def test_limits_of_a_form_are_reached() -> None:
    padded = NAMED + b"\r\nx: " + b"x" * (2048 - 4 - len(NAMED) - 5)
    assert parse_form("multipart/form-data; boundary=x", form(padded)) == {"file": b"photo"}
    eight_lines = NAMED + b"\r\nx: y" * 7
    assert parse_form("multipart/form-data; boundary=x", form(eight_lines)) == {"file": b"photo"}
    assert parse_form("multipart/form-data; boundary=x", form(*[NAMED] * 20)) == {"file": b"photo"}
    boundary = "b" * 70
    body = form(NAMED).replace(b"--x", b"--" + boundary.encode())
    assert parse_form(f"multipart/form-data; boundary={boundary}".ljust(1024), body) == {"file": b"photo"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data; boundary=x", form(NAMED + b"\r\nx: " + b"x" * (2048 - 4 - len(NAMED) - 4))),
        ("multipart/form-data; boundary=x", form(b'Content-Disposition: form-data; name="a' + b";" * 100_000)),
        ("multipart/form-data; boundary=x", form(NAMED + b"\r\nx: y" * 8)),
        ("multipart/form-data; boundary=x", form(*[NAMED] * 21)),
        (f"multipart/form-data; boundary={'b' * 71}", form(NAMED).replace(b"--x", b"--" + b"b" * 71)),
        ("multipart/form-data; boundary=x".ljust(1025), form(NAMED)),
        ('multipart/form-data; boundary=""', form(NAMED)),
    ],
    ids=["long head", "endless name", "nine lines", "21 parts", "long boundary", "long type", "empty boundary"],
)
def test_form_beyond_a_limit_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_form(content_type, body)


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
