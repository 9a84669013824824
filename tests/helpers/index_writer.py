"""Index notes without end and report each when it is indexed, for a test that kills this process."""

from __future__ import annotations

import itertools
import sys

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.search.embedding.e5 import E5
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef, Passage

index = PassageIndex(E5(), EmbeddedVectorStore(E5.space, sys.argv[1]))
for number in itertools.count():
    document = DocumentRef("t", "c", str(number))
    index.replace(document, 1, [Passage(document, 0, f"note {number}", 1)])
    print(number, flush=True)
