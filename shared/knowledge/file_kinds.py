"""Kinds of files that hold no text, by their names."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from shared.search.splitting import format_of

OTHER: Final = "other binary files"
_KINDS: Final[Mapping[str, str]] = {
    suffix: kind
    for kind, suffixes in {
        "pictures": "ai avif bmp dng eps gif heic heif icns ico jpeg jpg png psd svg svgz tga tif tiff webp xcf",
        "archives": "7z apk bz2 cab deb dmg gz iso jar lz4 rar rpm tar tbz tgz txz war whl xz zip zst",
        "sound files": "aac aif aiff flac m4a mid midi mp3 oga ogg opus wav wma",
        "videos": "3gp avi flv m4v mkv mov mp4 mpeg mpg ogv webm wmv",
        "fonts": "eot otf ttc ttf woff woff2",
        "programs": "class dll dylib elf exe msi o pdb pyc pyd so wasm",
        "databases": "accdb db3 dbf mdb parquet sqlite sqlite3",
        "office documents": "doc docx dotx epub mobi odp ods odt ppt pptx xls xlsb xlsx",
    }.items()
    for suffix in suffixes.split()
}
_TEXTS: Final = ("asc", "csv", "log", "rst", "tex", "text", "tsv", "txt")


def skipped_kind(path: str) -> str | None:
    """Return the kind of a file that is skipped without being read, or None."""
    return _KINDS.get(_suffix(path))


def claims_text(path: str) -> bool:
    """Return whether a file's name says that it holds text, so that other content is a failure."""
    return format_of(path) != "text" or _suffix(path) in _TEXTS


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower().removeprefix(".")
