"""The version of Kho, which a release sets."""

from typing import Final

VERSION: Final = "0.1.0"
