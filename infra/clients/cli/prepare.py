"""`kho prepare`: the parts that no Python package has, before the first start."""

from infra.clients.cli.target import exit_with_error
from infra.local.components import ComponentUnavailable, install


def prepare() -> None:
    """Install the DynamoDB engine and the embedding model in this Python environment, for all its users.

    Without this, 'kho serve' makes them at its first start, in your cache folder. Images and machines without a network
    need it.
    """
    try:
        install()
    except ComponentUnavailable as error:
        exit_with_error(str(error))
