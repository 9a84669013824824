"""The files of a wheel besides the source folders: the commands and the template."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig


class WheelContents(BuildHookInterface[WheelBuilderConfig]):
    """Adds files to a wheel, but not to an editable installation, which would hold copies of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files."""
        if version == "standard":
            build_data["force_include"] |= {"infra/deploy/wheel/kho": "kho", "template.yaml": "kho/template.yaml"}
