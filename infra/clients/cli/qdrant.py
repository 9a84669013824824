"""`kho qdrant`: the Qdrant cluster of passages and experiences."""

from typing import Final

from cyclopts import App

from infra.clients.cli.target import DEFAULT_TARGET, DataTarget, exit_with_error, open_stores
from shared.experiences.index import COLLECTION
from shared.platform.config import ConfigurationError, config
from shared.search.exhaustive_search import open_exhaustive_search
from shared.search.index import knowledge_index

qdrant: Final = App(name="qdrant", help="The Qdrant cluster of passages and experiences.")


@qdrant.command
def prepare(*, target: DataTarget = DEFAULT_TARGET) -> None:
    """Create the collections and their payload indexes, if they do not exist.

    Functions create them as well. This command checks address, key and model beforehand.
    """
    with open_stores(target):
        if not config().qdrant_url:
            exit_with_error("No Qdrant cluster is configured: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        try:
            for index in (knowledge_index(), open_exhaustive_search(COLLECTION)):
                index.close()
        except ConfigurationError as error:
            exit_with_error(f"{error}.")
        name = config().qdrant_collection
        print(f"The collections '{name}' and '{name}-{COLLECTION}' are ready.")
