"""The instructions of the Dockerfile's last stage."""

from __future__ import annotations

import json
from typing import Final

from infra.prepare import ROOT

FOLDER: Final = ROOT / "infra" / "deploy" / "container"
_OTHERS: Final = {"STOPSIGNAL"}


class Image:
    """The last stage: its base image, and what its instructions add."""

    def __init__(self) -> None:
        text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
        lines = [line for line in text[text.rindex("\nFROM") :].splitlines() if line and not line.startswith("#")]
        self._instructions = [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]
        (self.base,) = self._all("FROM")
        (self.user,) = self._all("USER")
        (self.folder,) = self._all("WORKDIR")
        (self.volume,) = self._all("VOLUME")
        self.ports = [int(port) for rest in self._all("EXPOSE") for port in rest.split()]
        self.environment = dict(each.split("=", 1) for rest in self._all("ENV") for each in rest.split())
        self.command: list[str] = [*self._words("ENTRYPOINT"), *self._words("CMD")]
        self.health = self._words("HEALTHCHECK")
        self.runs = self._all("RUN")
        self.copies = [self._copy(rest.split()) for rest in self._all("COPY")]
        unknown = {name for name, _ in self._instructions} - _OTHERS
        assert not unknown, unknown

    def _all(self, name: str) -> list[str]:
        """Take all instructions of a name."""
        found = [rest for each, rest in self._instructions if each == name]
        self._instructions = [each for each in self._instructions if each[0] != name]
        return found

    def _words(self, name: str) -> list[str]:
        (rest,) = self._all(name)
        words: list[str] = json.loads(rest[rest.index("[") :])
        return words

    @staticmethod
    def _copy(words: list[str]) -> tuple[str, list[str], str]:
        """Return the stage, which may be empty, the sources and the target."""
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
        return stage, words[:-1], words[-1]
