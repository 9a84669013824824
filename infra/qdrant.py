"""`kho qdrant`: the Qdrant cluster that passages and experiences are kept in."""

from __future__ import annotations

from typing import Final

from cyclopts import App

from infra.stores import HERE, Where, end, reached

qdrant: Final = App(name="qdrant", help="The Qdrant cluster that passages and experiences are kept in.")


@qdrant.command
def prepare(*, where: Where = HERE) -> None:
    """Make the collections with all that searches need of them; what is there already stays as it is.

    Functions do so themselves where they find none: this tells beforehand whether address, key and model are right.
    """
    with reached(where):
        from recall_kit.finding import COLLECTION
        from shared.config import ConfigurationError, config
        from shared.knowledge.index import knowledge_index
        from shared.knowledge.matching import matcher

        if not config().qdrant_url:
            end("There is no Qdrant cluster: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        try:
            for opened in (knowledge_index(), matcher(COLLECTION)):
                opened.close()
        except ConfigurationError as error:
            end(f"{error}.")
        name = config().qdrant_collection
        print(f"The collections '{name}' and '{name}-{COLLECTION}' are ready.")
