"""The language component of a vector, and its removal."""

from __future__ import annotations

from itertools import combinations

import pytest

from shared.search.embedding.e5 import E5
from shared.search.embedding.language_centering import remove_language, unit
from shared.search.embedding.models import E5_SMALL

SENTENCES = {
    "en": [
        "The service does not start after the update.",
        "How can I fix this error in my code?",
        "The user sees an empty page in the browser.",
        "Save the file and run the command again.",
        "The request takes too long and fails.",
        "Check the settings of the server.",
        "Two processes write to the same place.",
        "The device loses its connection to the network.",
        "The value is wrong because of an old version.",
        "Add a test for the function.",
    ],
    "vi": [
        "Dịch vụ không khởi động được sau khi cập nhật.",
        "Làm sao để sửa lỗi này trong mã của tôi?",
        "Người dùng thấy trang trống trong trình duyệt.",
        "Lưu tệp rồi chạy lại lệnh.",
        "Yêu cầu mất quá nhiều thời gian và thất bại.",
        "Kiểm tra cấu hình của máy chủ.",
        "Hai tiến trình ghi vào cùng một chỗ.",
        "Thiết bị bị mất kết nối mạng.",
        "Giá trị bị sai do phiên bản cũ.",
        "Thêm bài kiểm thử cho hàm.",
    ],
    "zh": [
        "更新之后服务无法启动。",
        "我怎样修复代码里的这个错误？",
        "用户在浏览器里看到空白页面。",
        "保存文件然后重新运行命令。",
        "请求耗时太长并且失败。",
        "检查服务器的设置。",
        "两个进程写到同一个地方。",
        "设备与网络断开连接。",
        "因为版本太旧所以值不对。",
        "给这个函数添加测试。",
    ],
}
"""The ten sentences from which each language's component was measured."""


def mean(vectors: list[list[float]]) -> list[float]:
    return [sum(each) / len(vectors) for each in zip(*vectors, strict=True)]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(unit(one), unit(other), strict=True))


@pytest.fixture(scope="module")
def vectors() -> dict[str, list[list[float]]]:
    """Return each sentence's vectors as a question and as a passage."""
    embedder = E5()
    return {
        name: [each.vector for text in texts for each in (embedder.question(text), *embedder.passages([text]))]  # type: ignore[misc]
        for name, texts in SENTENCES.items()
    }


def test_language_offset_is_the_mean_difference_of_translations(vectors: dict[str, list[list[float]]]) -> None:
    middle = mean([mean(each) for each in vectors.values()])
    for name, each in vectors.items():
        added = [own - all_ for own, all_ in zip(mean(each), middle, strict=True)]
        nowhere = [0.0] * len(middle)
        taken = [-value for value in remove_language(nowhere, SENTENCES[name][0])]
        assert cosine(taken, added) > 0.99


def test_centering_brings_translations_closer(vectors: dict[str, list[list[float]]]) -> None:
    for one, other in combinations(SENTENCES, 2):
        for number in range(10):
            texts = SENTENCES[one][number], SENTENCES[other][number]
            raw = vectors[one][2 * number], vectors[other][2 * number + 1]
            freed = [remove_language(vector, text) for vector, text in zip(raw, texts, strict=True)]
            assert cosine(*freed) > cosine(*raw)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("React useState stale closure", "en"),
        ("chung toi khong the khoi dong dich vu", "vi"),
        ("Lỗi docker compose", "vi"),
        ("React 中 useState 没有更新状态", "zh"),
    ],
)
def test_component_of_the_detected_language_is_removed(text: str, language: str) -> None:
    nowhere = [0.0] * E5_SMALL.dimensions
    assert remove_language(nowhere, text) == remove_language(nowhere, SENTENCES[language][0])


@pytest.mark.parametrize("text", ["ошибка сервера", "東京の天気はどうですか", "404", ""])
def test_unknown_language_is_not_centered(text: str) -> None:
    assert remove_language([0.6, 0.8], text) == [0.6, 0.8]
