"""Names of collections, projects and devices are distinct to the eye, in any script."""

from __future__ import annotations

import unicodedata

import pytest

from shared.devices.ids import may_be_device
from shared.rpc.names import deception, normalize_name

CLEAR = [
    *("notes", "ghi-chú", "Tài_liệu_Điện-tử", "笔记", "メモ帳", "노트", "ไทย", "தமிழ்", "заметки", "VK-заметки"),
    *("σημειώσεις", "μm", "Δt", "naïve", "مذكرات", "עברית", "می\u200cخواهم", "क्\u200dष"),
    *("👨\u200d👩\u200d👧", "👩🏽\u200d💻", "❤\ufe0f\u200d🔥", "🏳\ufe0f\u200d🌈", "🙂\u200d↔\ufe0f", "1\ufe0f\u20e3"),
    *("☺\ufe0f", "ℹ\ufe0f", "‼\ufe0f", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"),
]
INVISIBLE = [
    *("a\u202eb", "no\u200btes", "notes\ufeff", "x\u2060", "a\u200d", "a\u200db", "☺\u200d", "a\ufe0f", "1\ufe0f"),
    *("\U000e0041b", "no\u00adtes", "ab\u3164", "笔\u200d记", "笔\ufe00", "a\u2800", "a\u200fb", "می\u200c"),
]
LOOK_ALIKES = ["n\u043etes", "p\u0430ypal", "\u0391lpha", "not\u0435s-2", "ko\u03bdna"]


@pytest.mark.parametrize("name", CLEAR)
def test_names_in_any_script_and_emoji_are_accepted(name: str) -> None:
    for form in ("NFC", "NFD"):
        assert deception(normalize_name(unicodedata.normalize(form, name))) is None
        assert may_be_device(unicodedata.normalize(form, name))


@pytest.mark.parametrize("name", INVISIBLE)
def test_invisible_characters_are_refused_by_name(name: str) -> None:
    problem = deception(name)
    assert problem
    assert problem.startswith("holds an invisible character, U+")
    assert problem.isprintable()
    assert not may_be_device(name)


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_words_that_mix_latin_letters_with_look_alikes_are_refused(name: str) -> None:
    assert "look-alike, U+0" in (deception(name) or "")
    assert not may_be_device(name)


@pytest.mark.parametrize("name", ["a\x1b[2K", "a\nb", "a\x9bb"])
def test_device_ids_have_no_control_characters(name: str) -> None:
    assert not may_be_device(name)


def test_composed_and_decomposed_letters_are_one_name() -> None:
    assert normalize_name("ghi chu\u0301") == normalize_name("ghi ch\u00fa")
