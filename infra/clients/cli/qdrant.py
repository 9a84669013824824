"""`kho qdrant`: the Qdrant cluster of passages, experiences and messages."""

from typing import Final

from cyclopts import App

from infra.clients.cli.target import DEFAULT_TARGET, DataTarget, exit_with_error, open_stores
from shared.experiences.index import COLLECTION
from shared.platform.config import ConfigurationError, config
from shared.search.exhaustive_search import open_exhaustive_search
from shared.search.index import knowledge_index
from shared.search.message_index import INDEX, message_index

qdrant: Final = App(name="qdrant", help="The Qdrant cluster of passages, experiences and messages.")


@qdrant.command
def prepare(*, target: DataTarget = DEFAULT_TARGET) -> None:
    """Create the collections and their payload indexes, if they do not exist.

    Functions create them as well. This command checks address, key and model beforehand.
    """
    with open_stores(target):
        if not config().qdrant_url:
            exit_with_error("No Qdrant cluster is configured: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        try:
            knowledge_index().close()
            open_exhaustive_search(COLLECTION).close()
            if config().has_message_index:
                message_index().close()
        except ConfigurationError as error:
            exit_with_error(f"{error}.")
        name = config().qdrant_collection
        suffixes = ["", f"-{COLLECTION}", *([f"-{INDEX}"] if config().has_message_index else [])]
        print("These collections are ready:", ", ".join(name + suffix for suffix in suffixes))
