"""`kho qdrant`: the Qdrant cluster that passages and experiences are kept in."""

from __future__ import annotations

from typing import Final

from cyclopts import App

from infra.cli.target import DEFAULT_TARGET, DataTarget, exit_with_error, open_stores

qdrant: Final = App(name="qdrant", help="The Qdrant cluster that passages and experiences are kept in.")


@qdrant.command
def prepare(*, where: DataTarget = DEFAULT_TARGET) -> None:
    """Make the collections with all that searches need of them; what is there already stays as it is.

    Functions do so themselves where they find none: this tells beforehand whether address, key and model are right.
    """
    with open_stores(where):
        from shared.config import ConfigurationError, config
        from shared.knowledge.exhaustive_search import open_exhaustive_search
        from shared.knowledge.index import knowledge_index
        from shared.services.experience_index import COLLECTION

        if not config().qdrant_url:
            exit_with_error("There is no Qdrant cluster: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        try:
            for opened in (knowledge_index(), open_exhaustive_search(COLLECTION)):
                opened.close()
        except ConfigurationError as error:
            exit_with_error(f"{error}.")
        name = config().qdrant_collection
        print(f"The collections '{name}' and '{name}-{COLLECTION}' are ready.")
