"""Version numbers of four parts, which read like IP addresses."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(
    r"\b(?:ver|rev|sec)\.|\b(?:versions?|ver|rev|releases?|build|sections?|chapter|clause|firmware|driver|changelog|tag|"
    r"assembly\w*|nuget|sdk|packages?|librar(?:y|ies)|dependenc(?:y|ies)|plugins?|wheels?|pip|conda|npm|gem|oid|(?:fixed|introduced|added|removed|broken|available) (?:in|since)|"
    r"phiên bản|bản|gói|thư viện|mục|chương|trình điều khiển)\b|版本|依赖包?|库|安装包|驱动程序|驱动|固件|章节|第|版|[§]|"
    r"(?P<change>\b(?:upgrad\w+|downgrad\w+|bump\w*|roll\w*[ -]?back|revert\w*|updat\w+|nâng cấp|hạ cấp)\b|升级|降级|回退)",
    re.IGNORECASE,
)
_NETWORK: Final = re.compile(
    r"\b(?:ips?|ipv4|hosts?|servers?|addr\w*|dns|record|ping|ssh|scp|rsync|curl|wget|connect\w*|listen\w*|bind|gateway|router|"
    r"subnet|proxy|nameserver|node|client|agent|machine|instance|deploy\w*|reach\w*|resolv\w*|dial\w*|máy chủ|địa chỉ|máy)\b|"
    r"地址|服务器|主机|机器|://",
    re.IGNORECASE,
)
_ANOTHER_CLAUSE: Final = re.compile(r"[,，、。;；!！?？]|\.(?:\s|$)|\b(?:on|at|trên|tại)\b", re.IGNORECASE)
_EARLIER_VERSIONS: Final = re.compile(
    r"(\D*)((?:\d+(?:\.\d+)+\s*(?:to|and|or|và|đến|lên|sang|[,/→和与、~-]|->|=>|(?:升级|降级|回退)?[到至])\s*[vV]?)*)",
    re.IGNORECASE,
)
"""The text between the word and the version: words, then earlier versions."""
_LATER_VERSION: Final = re.compile(
    r"\s?(?:to|and|→|->|=>|lên|đến|(?:升级|降级|回退)?[到至和])\s?[vV]?\d+\.\d", re.IGNORECASE
)
_NAMED_AFTERWARDS: Final = re.compile(
    r"\s?(?:versions?\b|releases?\b|build\b|版|升级|降级|回退)|\s(?:of|for) (?:(?:the|our|this) )?(?:[\w.-]+ )?"
    r"(?:driver|agent|sdk|library|plugin|package|firmware|app|client|server|runtime|module|extension)\b",
    re.IGNORECASE,
)
_FROM: Final = re.compile(r"\b(?:from|từ)\b|从|自", re.IGNORECASE)
_TO: Final = re.compile(r"\b(?:to|lên|xuống|sang|về)\b|[到至为:=]", re.IGNORECASE)
_LONGEST_DISTANCE: Final = 40
"""The distance, in characters, from the word to the first version."""
_PRODUCT: Final = re.compile(
    r"(?:JDK|JRE|Java|SDK|CUDA|cuDNN|\.NET|Visual Studio|Android Studio|SQL Server|Oracle|Chrome|Chromium|Edge|WebView2|"
    r"Windows|Office|Teams|Outlook|Unity|Unreal|ImageMagick|Delphi|Zoom|Skype)[ /]$"
)
_LIBRARY: Final = re.compile(
    r"(?<![\w.@/-])(?:lib[a-z]\w*|py[a-z]\w*|numpy|scipy|pandas|polars|matplotlib|scikit-\w+|sklearn|(?:py)?torch\w*|tensorflow|keras|jax|"
    r"onnx\w*|opencv|protobuf|grpc(?:io)?|boost|qt\d?|llvm|clang|gcc|glibc|openssl|ffmpeg|gstreamer|log4j|jackson|gradle|maven|kotlin|"
    r"npm|pnpm|yarn|pip|conda|poetry|rails|django|flask|fastapi|sqlalchemy|celery|pillow|lxml|setuptools|webpack|vite|babel|eslint|typescript|react|angular|electron|"
    r"flutter|dart|esp-idf|arduino\w*|platformio|zephyr|freertos|lvgl|esphome|tasmota|micropython|circuitpython|"
    r"[a-z][\w.-]*-(?:python|py|js|sdk|cli|core|runtime|common|utils|lib|headless|binary|dev)|(?-i:[A-Z][A-Za-z0-9]+(?:\.[A-Z][A-Za-z0-9]+)+))(?:\[[\w,]+\])?[ \t=]{1,3}$",
    re.IGNORECASE,
)


def is_version(before: str, after: str) -> bool:
    """Return True if the words around four numbers name a version."""
    if _PRODUCT.search(before) or _LIBRARY.search(before):
        return True
    words = next(reversed([*_VERSION.finditer(before)]), None)
    between = _EARLIER_VERSIONS.fullmatch(before, words.end()) if words else None
    if words is None or between is None or len(between[1]) > _LONGEST_DISTANCE:
        return _NAMED_AFTERWARDS.match(after) is not None
    if _NETWORK.search(between[1]) or _ANOTHER_CLAUSE.search(between[1]) or _NETWORK.match(after.lstrip()):
        return False
    if between[2] or _LATER_VERSION.match(after):
        return True
    is_source = _FROM.search(between[1]) is not None
    if words["change"]:
        return is_source or _TO.search(between[1]) is not None
    return not is_source
