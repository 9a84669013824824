"""`kho generate`: what follows from the functions and `infra/template/`."""

from infra.clients.cli.target import exit_with_error
from infra.deploy.generate import generate_all
from infra.installation import IS_CHECKOUT


def generate(*, check: bool = False) -> None:
    """Write template.yaml, catalogues, sample events, alarms and reference pages from the functions.

    Args:
        check: Write nothing, and fail if a file is out of date.
    """
    if not IS_CHECKOUT:
        exit_with_error("This is an installed Kho: 'kho generate' writes the files of a checkout.")
    stale = generate_all(write=not check)
    if check and stale:
        exit_with_error(f"Out of date: {', '.join(stale)}. Run 'make generate'.")
