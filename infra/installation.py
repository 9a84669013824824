"""The folder that holds `functions`, `shared` and `infra`: a checkout, or the package `kho` of an installed wheel."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
IS_CHECKOUT: Final = (ROOT / "pyproject.toml").is_file()
