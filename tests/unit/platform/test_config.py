"""Settings that are refused on start, and those that are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.platform.config import ConfigurationError, config

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    config.cache_clear()
    yield
    config.cache_clear()


def test_cors_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config().cors_origins == ()
    for value, origins in (
        ("https://app.example.com, http://localhost:5173", ("https://app.example.com", "http://localhost:5173")),
        ("*", None),
        ("app.example.com", None),
        ("https://app.example.com/path", None),
    ):
        monkeypatch.setenv("KHO_CORS_ORIGINS", value)
        config.cache_clear()
        if origins is None:
            with pytest.raises(ConfigurationError, match="KHO_CORS_ORIGINS"):
                config()
        else:
            assert config().cors_origins == origins


def test_auto_summary_without_a_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTO_SUMMARY", "true")
    with pytest.raises(ConfigurationError, match=r"AUTO_SUMMARY .* KHO_MODEL_PROVIDER"):
        config()
    monkeypatch.setenv("KHO_MODEL_PROVIDER", "openai")
    config.cache_clear()
    assert config().auto_summary


@pytest.mark.parametrize(
    "url", ["ws://vision.example/x", "wss://vision.example", "vision.example/x", "http://", "ftp://x"]
)
def test_vision_url_must_be_http(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KHO_VISION_URL", url)
    with pytest.raises(ConfigurationError, match="KHO_VISION_URL"):
        config()


@pytest.mark.parametrize("url", ["", "http://10.0.0.7:8003/explain", "https://vision.example/x?model=1"])
def test_vision_url_of_any_host(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KHO_VISION_URL", url)
    assert config().vision_url == url


@pytest.mark.parametrize("url", ["192.168.1.5:8001", "ftp://x", "http://x/path", "http://x?y", "http://[fe80::1]:8001"])
def test_board_url_must_be_an_origin(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KHO_BOARD_URL", url)
    with pytest.raises(ConfigurationError, match="KHO_BOARD_URL"):
        config()


@pytest.mark.parametrize("url", ["http://192.168.1.5:8001", "https://kho.example", "http://[::1]:8001"])
def test_board_url_is_an_origin(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KHO_BOARD_URL", f"{url}/")
    assert config().board_url == url
