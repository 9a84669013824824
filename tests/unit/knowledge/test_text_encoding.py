"""Recognition of a text's encoding."""

from __future__ import annotations

import unicodedata

import pytest

from shared.knowledge.text_encoding import Binary, NotText, decode

CHINESE = "黑豹队的防守只丢了308分，在联赛中排名第六。\r\n"
VIETNAMESE = "Đội Panthers chỉ để thua 308 điểm, đứng thứ sáu của giải; họ có 24 lần chặn bóng.\n"
TONES = "\u0300\u0301\u0303\u0309\u0323"
WESTERN = {
    "French": "L'été, le garçon a mangé où ? Ça coûte 5 € — c'était « bon », cœur à cœur.",
    "German": "Größe, Straße, Äpfel; Übermut schadet schönen Flüssen.",
    "Spanish": "¿Dónde está el niño? Comió una piña en la montaña.",
    "Portuguese": "Não é possível: são irmãs, e o coração põe-se a cantar. A maçã está no chão.",
    "Italian": "Non può essere così: però ciò che farò lunedì non lo so più.",
    "Icelandic": "Það er gott að vera hér. Við förum út að borða með þér á morgun.",
    "Danish": "Rødgrød med fløde på en ø, æbler og blåbær.",
    "Estonian": "Õhtul kõnelesime põllul sõpradega; või öelda, et jõgi on põõsaste all?",
    "capitals": "ÉCOLE ÉLÉMENTAIRE À CÔTÉ",
    "symbols": "20 °C ± 1 %",
    "a word": "café",
}
OTHERS = {
    "cp1251": "Привет, мир. Это обычный текст на русском языке.",
    "koi8-r": "Привет, мир. Это обычный текст на русском языке.",
    "iso8859-7": "Καλημέρα κόσμε, τι κάνεις;",
    "cp1255": "שלום עולם",
    "shift_jis": "クラスターは、コントロールプレーンと、ワーカーマシンで構成されています。",
    "euc-jp": "クラスターは、コントロールプレーンと、ワーカーマシンで構成されています。",
    "euc-kr": "쿠버네티스 클러스터는 컨트롤 플레인과 노드라는 머신으로 구성된다 " * 9,
}


def windows_1258(text: str) -> bytes:
    """Encode as Windows does: a letter, and its tone after it."""
    encoded = b""
    for letter in text:
        parts = unicodedata.normalize("NFD", letter)
        base = unicodedata.normalize("NFC", "".join(part for part in parts if part not in TONES))
        encoded += (base + "".join(part for part in parts if part in TONES)).encode("cp1258")
    return encoded


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [CHINESE, VIETNAMESE, "Plain words.\n", "一。\n"])
def test_utf_16_is_recognised_with_and_without_a_mark(codec: str, text: str) -> None:
    assert decode(text.encode(codec)) == (text, "UTF-16")
    assert decode("\ufeff".encode(codec) + text.encode(codec)) == (text, "UTF-16")


@pytest.mark.parametrize("text", ["", "plain", "Tiếng Việt, 漢字, 🌱", "\x1b[1m colours \x00"[:10]])
def test_utf_8_is_not_changed(text: str) -> None:
    assert decode(text.encode()) == (text, "UTF-8")
    assert decode(b"\xef\xbb\xbf" + text.encode()) == (text, "UTF-8")


@pytest.mark.parametrize("text", [CHINESE, "你好", "# 安装\n\n运行 `make setup`。\n", "部署到 AWS Lambda，𠮷野家"])
def test_chinese_is_recognised(text: str) -> None:
    assert decode(text.encode("gb18030")) == (text, "GB18030")


@pytest.mark.parametrize(
    "text", [VIETNAMESE, "Hà Nội", "Tiếng Việt", "Đây là đâu", "Chạy `npm install typescript` rồi."]
)
def test_vietnamese_is_recognised_and_composed(text: str) -> None:
    """Letters and their tones become one character, as people write and search them."""
    assert decode(windows_1258(text)) == (text, "Windows-1258")


@pytest.mark.parametrize("text", WESTERN.values(), ids=WESTERN)
def test_western_languages_are_recognised(text: str) -> None:
    assert decode(text.encode("cp1252")) == (text, "Windows-1252")


@pytest.mark.parametrize(("codec", "text"), OTHERS.items(), ids=OTHERS)
def test_other_encodings_are_refused_instead_of_misread(codec: str, text: str) -> None:
    with pytest.raises(NotText, match="in no encoding that is recognised"):
        decode(text.encode(codec))


@pytest.mark.parametrize("text", [CHINESE * 3, VIETNAMESE * 3])
def test_damaged_utf_8_is_refused_with_its_place(text: str) -> None:
    damaged = text.encode()
    place = len(damaged) // 2
    with pytest.raises(NotText, match=r"is not valid UTF-8 at byte \d+$") as refused:
        decode(damaged[:place] + b"\xff" + damaged[place:])
    assert abs(int(str(refused.value).rpartition(" ")[2]) - place) <= 4


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x7fELF\x02\x01\x01\0", bytes(range(256)) * 90]
)
def test_binary_content_is_no_text(content: bytes) -> None:
    with pytest.raises(Binary, match="is not text"):
        decode(content)
