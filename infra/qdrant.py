"""`kho qdrant`: the Qdrant cluster that passages are kept in."""

from __future__ import annotations

from typing import Final

from cyclopts import App

from infra.stores import HERE, Where, end, reached

qdrant: Final = App(name="qdrant", help="The Qdrant cluster that passages are kept in.")


@qdrant.command
def prepare(*, where: Where = HERE) -> None:
    """Make the collection with all that searches need of it; what is there already stays as it is.

    Functions do so themselves where they find none: this tells beforehand whether address, key and model are right.
    """
    with reached(where):
        from shared.config import ConfigurationError, config
        from shared.knowledge.index import knowledge_index

        if not config().qdrant_url:
            end("There is no Qdrant cluster: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        try:
            index = knowledge_index()
        except ConfigurationError as error:
            end(f"{error}.")
        index.close()
        print(f"The collection '{config().qdrant_collection}' is ready.")
