"""The environment of libraries. No other module writes it: Kho's own settings are in `runtime.environment`."""

import os
from collections.abc import Iterable, Mapping


def set_for_libraries(variables: Mapping[str, str], *, without: Iterable[str] = ()) -> None:
    """Set variables that libraries read by themselves, and remove those of `without`."""
    for name in without:
        os.environ.pop(name, None)
    os.environ.update(variables)
