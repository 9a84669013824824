"""Photos of devices and the tokens for them, at the real store and a model on loopback."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from boards import explain_photo as vision
from shared.access.rate_limits import rate_limits
from shared.aws.dynamodb import Table
from shared.devices.registry import RegisteredDevice, registry
from shared.devices.sessions import DevicePresence
from shared.devices.vision import TOKEN_MS, VisionOffer, vision_offer
from shared.platform.clock import now_ms
from shared.platform.config import config
from tests.helpers.camera_requests import FORM, PHOTO, QUESTION, SESSION, CameraDevice, form, fresh_address, send
from tests.helpers.device_backend import DeviceBackend, reset_settings, running_device_backend
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.model_server import FAILING, SLOW, ModelServer, reply_with
from tests.helpers.store_faults import FAILED
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANSWER = 'Một quả bóng đỏ và một chiếc cốc "xanh".'


@pytest.fixture
def offering(settings: Callable[..., None], model: ModelServer) -> Iterator[Callable[..., None]]:
    """Configure a model and a public address."""
    model.behave = reply_with(ANSWER)
    settings(KHO_AUTH="required", KHO_PUBLIC_URL="https://kho.example", KHO_VISION_URL="")
    rate_limits.cache_clear()
    yield settings
    rate_limits.cache_clear()


def refusal(answer: tuple[int, Any]) -> str:
    """Return the message of a refusal, which has status 200."""
    status, content = answer
    assert (status, content.pop("success")) == (200, False)
    message: str = content.pop("message")
    assert content == {}
    return message


def is_unauthorized(answer: tuple[int, Any]) -> bool:
    return answer[0] == 401 and answer[1]["error"]["code"] == "NOT_SIGNED_IN"


@pytest.mark.parametrize("provider", ["openai", "bedrock"])
@pytest.mark.parametrize("size", [20_000, 60_000, 300_000, 4_000_000])
def test_photo_and_question_reach_the_model_and_its_answer_the_board(
    offering: Callable[..., None], model: ModelServer, tenant: str, provider: str, size: int
) -> None:
    offering(KHO_MODEL_PROVIDER=provider)
    camera = CameraDevice(tenant)
    photo = b"\xff\xd8\xff" + secrets.token_bytes(size - 3)
    assert camera.send(photo=photo) == (200, {"success": True, "response": ANSWER})
    (request,) = model.asked
    content = request.body["messages"][-1]["content"]
    if provider == "openai":
        image, text = content
        sent = base64.b64decode(image["image_url"]["url"].removeprefix("data:image/jpeg;base64,"), validate=True)
    else:
        image, text = content
        assert image["image"]["format"] == "jpeg"
        sent = base64.b64decode(image["image"]["source"]["bytes"], validate=True)
    assert sent == photo
    assert text["text"] == QUESTION
    assert "language of the question" in request.system


def test_blank_question_asks_what_the_photo_shows(
    offering: Callable[..., None], model: ModelServer, tenant: str
) -> None:
    camera = CameraDevice(tenant)
    assert camera.send(" ")[1]["success"]
    assert model.asked[0].body["messages"][-1]["content"][1]["text"] == "What does this photo show?"


def test_photo_without_the_token_of_a_current_session_is_refused(
    offering: Callable[..., None], model: ModelServer, tenant: str
) -> None:
    camera, other = CameraDevice(tenant), CameraDevice(f"{tenant}-other")
    device_id = camera.device.id
    wrong = ["", "x", device_id, f"{device_id}.", f"{device_id}.{'0' * 43}", f"{other.device.id}.{camera.token[-43:]}"]
    for token in (None, *wrong, camera.token + "x", f"{camera.token}\u00e9", "unknown." + "0" * 43):
        assert is_unauthorized(send(token, form())), token
    assert is_unauthorized(send(None, b"x" * 5_000_000))
    assert model.asked == []
    assert camera.send()[0] == other.send()[0] == 200


def test_requests_without_a_valid_token_are_limited_by_address(offering: Callable[..., None], tenant: str) -> None:
    """An address over its limit gets 429. A camera there is served all the same, and other addresses have their own."""
    offering(KHO_ADDRESS_CHECK_IN_BURST="3", KHO_ADDRESS_CHECK_INS_A_MINUTE="1")
    rate_limits.cache_clear()
    camera, here, elsewhere = CameraDevice(tenant), fresh_address(), fresh_address()
    wrong = [None, "x", f"{camera.device.id}.{'0' * 43}"]
    assert [send(token, form(), source=here)[0] for token in wrong] == [401] * 3
    status, content = send("x", form(), source=here)
    assert (status, content["error"]["code"]) == (429, "TOO_MANY_REQUESTS")
    assert camera.send(source=here)[0] == 200
    assert is_unauthorized(send("x", form(), source=elsewhere))


def test_open_mode_counts_no_requests_without_a_token(offering: Callable[..., None]) -> None:
    offering(KHO_AUTH="open", KHO_ADDRESS_CHECK_IN_BURST="1")
    rate_limits.cache_clear()
    here = fresh_address()
    assert [send("x", form(), source=here)[0] for _ in range(3)] == [401] * 3


def test_token_ends_with_its_session(offering: Callable[..., None], tenant: str) -> None:
    camera = CameraDevice(tenant)
    first = camera.token
    camera.token = camera.start()
    assert camera.send()[0] == 200
    camera.token = first
    assert is_unauthorized(camera.send())
    camera.claim_session(replace(SESSION, started_at=now_ms()))
    assert is_unauthorized(camera.send())


def test_token_ends_with_the_connection_of_its_session(offering: Callable[..., None], tenant: str) -> None:
    camera = CameraDevice(tenant, connection="one")
    at = now_ms()
    camera.store.record_presence(DevicePresence(True, "one", at - 1_000, 1))
    assert camera.send()[0] == 200
    camera.store.record_presence(DevicePresence(False, "one", at + 60_000, 2))
    assert is_unauthorized(camera.send())
    camera.store.record_presence(DevicePresence(True, "two", at + 120_000, 3))
    assert is_unauthorized(camera.send())


def test_token_ends_with_the_registration_of_its_device(offering: Callable[..., None], tenant: str) -> None:
    camera = CameraDevice(tenant)
    assert camera.send()[0] == 200
    registry().revoke(camera.device.id)
    assert is_unauthorized(camera.send())
    registry().register(f"{tenant}-next", camera.device.id)
    assert is_unauthorized(camera.send())


def test_token_ends_after_a_day(offering: Callable[..., None], tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    camera, now = CameraDevice(tenant), now_ms()
    monkeypatch.setattr("shared.devices.vision.now_ms", lambda: now + TOKEN_MS - 60_000)
    assert camera.send()[0] == 200
    monkeypatch.setattr("shared.devices.vision.now_ms", lambda: now + TOKEN_MS)
    assert is_unauthorized(camera.send())


@pytest.mark.parametrize("name", FAILING)
def test_failing_model_is_a_worded_refusal(
    offering: Callable[..., None], model: ModelServer, tenant: str, name: str
) -> None:
    model.behave = FAILING[name]
    if name in ("too many words", "words that are not text"):
        assert CameraDevice(tenant).send()[1]["success"]
    else:
        assert "language model" in refusal(CameraDevice(tenant).send())


@pytest.mark.parametrize("slow", SLOW)
def test_slow_model_is_a_worded_refusal_after_the_limit(
    offering: Callable[..., None], model: ModelServer, tenant: str, slow: str
) -> None:
    offering(KHO_VISION_SECONDS="1")
    model.behave = SLOW[slow]
    assert refusal(CameraDevice(tenant).send()) == "The language model did not answer within 1 seconds."
    assert len(model.asked) <= 1  # a busy machine may not even have sent the request


def test_limit_of_the_model_is_18_seconds(offering: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KHO_VISION_SECONDS", raising=False)
    config.cache_clear()
    assert config().vision_seconds == 18


@pytest.mark.parametrize("text", ["từ " * 10_000, "x" * 20_000, '"\\\n' * 7_000, "đ" * 20_000])
def test_long_answer_is_cut_below_4_kb(
    offering: Callable[..., None], model: ModelServer, tenant: str, text: str
) -> None:
    model.behave = reply_with(text)
    status, content = CameraDevice(tenant).send()
    shown = content["response"]
    assert (status, content["success"]) == (200, True)
    assert shown.endswith("…")
    assert text.startswith(shown[:-1])
    assert 3_000 < len(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()) <= 3_500
    assert not shown.startswith("từ") or shown.endswith("từ…")


WRONG = {
    "multipart/form-data": (b"{}", "application/json"),
    "no end": (b"nothing", ""),
    "JPEG or PNG": (form(photo=b"GIF89a"), ""),
    "2048 characters": (form("x" * 2_049), ""),
    "boundary": (form("a\r\n------ESP32_CAMERA_BOUNDARY\r\nb"), ""),
    "'file'": (b'--x\r\nContent-Disposition: form-data; name="question"\r\n\r\nx\r\n--x--', f"{FORM}; boundary=x"),
    "4 MB": (form(photo=PHOTO + b"x" * 4 * 1024 * 1024), ""),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_request_is_a_worded_refusal(
    offering: Callable[..., None], model: ModelServer, tenant: str, message: str
) -> None:
    body, content_type = WRONG[message]
    assert message in refusal(send(CameraDevice(tenant).token, body, content_type=content_type))
    assert model.asked == []


def test_photos_of_a_device_are_limited_and_those_of_others_are_not(
    offering: Callable[..., None], model: ModelServer, tenant: str
) -> None:
    offering(KHO_DEVICE_PHOTO_BURST="2", KHO_DEVICE_PHOTOS_A_MINUTE="1")
    rate_limits.cache_clear()
    camera, other = CameraDevice(tenant), CameraDevice(tenant)
    assert [camera.send()[1]["success"] for _ in range(2)] == [True, True]
    assert "at most 1 a minute, 2 at once" in refusal(camera.send())
    assert other.send()[1]["success"]
    camera.token = camera.start()
    assert "at most 1 a minute, 2 at once" in refusal(camera.send())
    assert len(model.asked) == 3


def test_unavailable_store_is_a_worded_refusal(offering: Callable[..., None], tenant: str) -> None:
    camera = CameraDevice(tenant)
    with intercept_requests(answer_operation("GetItem", lambda _: FAILED)):
        assert refusal(camera.send())


def test_defect_is_a_worded_refusal(
    offering: Callable[..., None], tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera = CameraDevice(tenant)
    monkeypatch.setattr(vision, "parse_form", lambda *_: 1 // 0)
    assert refusal(camera.send()) == "Internal error"


def test_nothing_of_a_photo_is_stored_or_logged(
    offering: Callable[..., None], model: ModelServer, tenant: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "kho.log"
    monkeypatch.setenv("KHO_LOG_FILE", str(log))
    camera = CameraDevice(tenant)
    assert camera.send()[1]["success"]
    model.behave = FAILING["an error"]
    refusal(camera.send())
    tables = (config().devices_table, config().limits_table)
    stored = str([item for name in tables for page in Table(name).scan("") for item in page])
    assert camera.device.id in stored
    kept = stored + log.read_text()
    assert "boards/explain_photo" in kept
    for content in ("Trên bàn", "quả bóng", "a photo", camera.token, camera.token.rpartition(".")[2]):
        assert content not in kept


def test_offer_needs_a_model_and_an_address(offering: Callable[..., None], tenant: str) -> None:
    device = RegisteredDevice("lamp", tenant, "", "direct", "")

    def url() -> str | None:
        offer = vision_offer(device)
        return offer.url if offer else None

    assert url() == "https://kho.example/vision/explain"
    offering(KHO_BOARD_URL="http://192.168.1.5:8001/")
    assert url() == "http://192.168.1.5:8001/vision/explain"
    offering(KHO_VISION_URL="http://10.0.0.7/explain", KHO_VISION_TOKEN="word")
    assert vision_offer(device) == VisionOffer("http://10.0.0.7/explain", "word")
    offering(KHO_VISION_URL="", KHO_MODEL_PROVIDER="none")
    assert url() is None
    offering(KHO_MODEL_PROVIDER="openai", KHO_BOARD_URL="", KHO_PUBLIC_URL="")
    assert url() is None


def test_each_offer_has_a_token_of_its_own_that_is_not_shown(offering: Callable[..., None], tenant: str) -> None:
    device = RegisteredDevice("lamp", tenant, "", "direct", "")
    first, second = vision_offer(device), vision_offer(device)
    assert first
    assert second
    assert first.token != second.token
    assert first.token not in repr(first)


@pytest.fixture
def home(offering: Callable[..., None]) -> Iterator[DeviceBackend]:
    offering(KHO_AUTH="open")
    with running_device_backend(rules=True) as running:
        yield running
    reset_settings()


def test_session_offers_photos_and_is_renewed_before_its_token_ends(
    home: DeviceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.device() as one:
        until(lambda: one.sessions.read().session)
        offered = one.simulated.firmware.vision
        assert offered["url"] == "https://kho.example/vision/explain"
        assert send(offered["token"], form())[0] == 200
        one.call("self.test.echo", text="x")
        assert len(one.sent("initialize")) == 1
        now = now_ms()
        for module in ("handshake", "sessions", "vision"):
            monkeypatch.setattr(f"shared.devices.{module}.now_ms", lambda: now + TOKEN_MS // 2)
        one.tools()
        assert len(one.sent("initialize")) == 1
        one.call("self.test.echo", text="x")
        assert len(one.sent("initialize")) == 2
        renewed = one.simulated.firmware.vision
        assert renewed["token"] != offered["token"]
        assert send(renewed["token"], form())[0] == 200
        assert is_unauthorized(send(offered["token"], form()))
        one.call("self.test.echo", text="x")
        assert len(one.sent("initialize")) == 2


def test_token_of_a_clock_that_was_ahead_ends_and_is_renewed(
    home: DeviceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it lived for as long as the clock was ahead, and its day."""
    with home.device() as one:
        until(lambda: one.sessions.read().session)
        now = now_ms()
        with monkeypatch.context() as ahead:
            for module in ("handshake", "sessions", "vision"):
                ahead.setattr(f"shared.devices.{module}.now_ms", lambda: now + 2 * TOKEN_MS)
            one.call("self.test.echo", text="x")
            token = one.simulated.firmware.vision["token"]
            assert send(token, form())[0] == 200
        assert is_unauthorized(send(token, form()))
        home.talks._ready.clear()
        one.call("self.test.echo", text="x")
        assert send(one.simulated.firmware.vision["token"], form())[0] == 200


def test_session_without_a_token_is_not_renewed(
    home: DeviceBackend, offering: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KHO_MODEL_PROVIDER", "none")
    config.cache_clear()
    with home.device() as one:
        until(lambda: one.sessions.read().session)
        assert one.sent("initialize")[0]["params"] == {"capabilities": {}}
        now = now_ms()
        monkeypatch.setattr("shared.devices.handshake.now_ms", lambda: now + TOKEN_MS)
        monkeypatch.setenv("KHO_MODEL_PROVIDER", "openai")
        config.cache_clear()
        one.call("self.test.echo", text="x")
        assert len(one.sent("initialize")) == 1
