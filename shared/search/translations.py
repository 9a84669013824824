"""Messages for people in the language of their question: English, Vietnamese or Chinese."""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = ("vi", "zh")
"""The languages of translations."""
TRANSLATIONS: Final[dict[str, dict[str, str]]] = {
    "No document is relevant to this question.": {
        "vi": "Không có tài liệu nào liên quan đến câu hỏi này.",
        "zh": "没有与此问题相关的文档。",
    },
    "The web search would not have been ready in time.": {
        "vi": "Tìm kiếm trên web không kịp thời gian cho phép.",
        "zh": "网络搜索无法在限定时间内完成。",
    },
    "The web search failed.": {"vi": "Tìm kiếm trên web không thành công.", "zh": "网络搜索失败。"},
    "The reranking is not available.": {"vi": "Không xếp hạng lại được kết quả.", "zh": "无法对结果重新排序。"},
    "The reranking would not have been ready in time.": {
        "vi": "Việc xếp hạng lại không kịp thời gian cho phép.",
        "zh": "重新排序无法在限定时间内完成。",
    },
    "The language model's answer was cut off at its limit.": {
        "vi": "Câu trả lời của mô hình ngôn ngữ bị cắt vì quá dài.",
        "zh": "语言模型的回答因过长被截断。",
    },
    "No language model is configured.": {"vi": "Chưa cấu hình mô hình ngôn ngữ.", "zh": "未配置语言模型。"},
    "The language model would not have answered in time.": {
        "vi": "Mô hình ngôn ngữ không trả lời kịp thời gian cho phép.",
        "zh": "语言模型无法在限定时间内回答。",
    },
    "The settings of the language model cannot be used.": {
        "vi": "Không dùng được cấu hình của mô hình ngôn ngữ.",
        "zh": "语言模型的设置无法使用。",
    },
    "The language model answered with nothing that can be used.": {
        "vi": "Mô hình ngôn ngữ không đưa ra câu trả lời dùng được.",
        "zh": "语言模型没有给出可用的回答。",
    },
    "The language model is not answering.": {
        "vi": "Mô hình ngôn ngữ không phản hồi.",
        "zh": "语言模型没有响应。",
    },
    "The language model answered with an error.": {
        "vi": "Mô hình ngôn ngữ báo lỗi.",
        "zh": "语言模型返回了错误。",
    },
    "The language model refuses the key.": {
        "vi": "Mô hình ngôn ngữ từ chối khóa.",
        "zh": "语言模型拒绝了密钥。",
    },
    "Nothing in these collections matches. Try other words.": {
        "vi": "Không có gì trong các bộ sưu tập này khớp. Hãy thử từ khác.",
        "zh": "这些知识库中没有匹配的内容。请换用其他词语。",
    },
    "Did you mean: {words}?": {"vi": "Có phải ý bạn là: {words}?", "zh": "您是不是想问：{words}？"},
    "The query is unclear.": {"vi": "Câu hỏi chưa rõ.", "zh": "问题不够明确。"},
    "The query is unclear. These words occur there: {words}.": {
        "vi": "Câu hỏi chưa rõ. Trong tài liệu có những từ này: {words}.",
        "zh": "问题不够明确。文档中有这些词语：{words}。",
    },
    "{number} sections match.": {"vi": "Có {number} mục khớp.", "zh": "有 {number} 个章节匹配。"},
    "{number} sections match. Add one of these: {words}.": {
        "vi": "Có {number} mục khớp. Hãy thêm một trong những từ này: {words}.",
        "zh": "有 {number} 个章节匹配。请加上其中一个词语：{words}。",
    },
    "The messages were searched by their words only, because embedding is not available.": {
        "vi": "Chỉ tìm tin nhắn theo từ, vì không dùng được phép nhúng.",
        "zh": "无法计算向量，只按词语搜索了消息。",
    },
    "The index does not answer: only messages that it does not have yet were searched, by their words.": {
        "vi": "Chỉ mục không phản hồi: chỉ tìm theo từ trong những tin nhắn chưa được lập chỉ mục.",
        "zh": "索引没有响应：只按词语搜索了尚未编入索引的消息。",
    },
    "The query is specific enough.": {"vi": "Câu hỏi đã đủ cụ thể.", "zh": "问题已足够具体。"},
}
"""The messages in other languages, by the English text."""


def translate(text: str, language: str, **values: object) -> str:
    """Return a message in `language`, or in English where there is no translation."""
    return TRANSLATIONS.get(text, {}).get(language, text).format(**values)
