"""Environment variables of commands: each option has one, positional arguments and confirmations have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cyclopts import Parameter
from cyclopts.argument import ArgumentCollection
from cyclopts.config import Env

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument

_CONFIRMATION: Final = "--yes"


class OptionEnvironment(Env):
    """The environment as a source of options' values."""

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Set the options that the environment names."""
        settings = ArgumentCollection(filter(_is_setting, arguments))  # type: ignore[no-untyped-call]  # cyclopts leaves it untyped
        super().__call__(app, commands, settings)

    def _convert_argument(self, commands: tuple[str, ...], argument: Argument) -> str:
        """Return the variable's name for the help page, which hides it if the argument is not a setting."""
        if not _is_setting(argument):
            argument.parameter = Parameter.combine(argument.parameter, Parameter(show_env_var=False))
        return super()._convert_argument(commands, argument)


def _is_setting(argument: Argument) -> bool:
    return not argument.is_positional_only() and _CONFIRMATION not in argument.names


OPTION_ENVIRONMENT: Final = OptionEnvironment("KHO_", command=False)
