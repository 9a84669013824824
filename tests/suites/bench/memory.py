"""Conversations: messages and contexts as a conversation grows, compared with LangChain's DynamoDB history."""

from __future__ import annotations

import itertools
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from infra.local.data_folder import read_server_info
from infra.local.environment import point_at_store, prepare
from infra.local.template import load
from shared.aws.dynamodb import Keys, Table, Write
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.memory.message_history import MessageHistory
from shared.platform.config import config
from shared.platform.runtime import runtime
from tests.helpers.dynamodb import boto3_client
from tests.helpers.kho_server import KhoServer
from tests.suites.bench import tables as bench
from tests.suites.bench.consumed_capacity import consumed_capacity
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.suites.bench.tables import Timing

TEXT: Final = "Răng của tôi đau khi uống nước lạnh; tôi nên làm gì trước khi đến gặp nha sĩ? " * 2
TENANT: Final = "local"
LONG: Final = sized(200, full=20_000)
MIDDLE: Final = sized(100, full=1_000)
TRANSACTION: Final = 100
ROUNDS: Final = sized(2, full=100)
PEER_ROUNDS: Final = sized(2, full=20)
WRITERS, EACH = 8, sized(3, full=40)
STEPS: Final = sized((1_000,), full=(100, 10, 1))
"""The number of messages that are added at a time to find the upper limit."""


def tables() -> list[bench.BenchTable]:
    """Measure through a running server's endpoints and at its store, and LangChain's history on the same store."""
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        KhoServer(Path(folder) / "data", environment={"KHO_STORE": "loopback"}, measured=True) as server,
    ):
        running = read_server_info(server.data)
        assert running
        prepare(load(), Path(folder), auth="open")
        point_at_store(running["store_url"])
        ours = KhoConversations()
        return [_growth(server, ours), _beside(ours, LangChainHistory())]


class KhoConversations:
    """Our conversations at store level."""

    def __init__(self) -> None:
        self.conversations = Conversations(Table(config().memory_table), TENANT)

    def conversation(self, length: int) -> str:
        """Make a conversation of `length` messages, written in bulk as `append` would have."""
        conversation_id = self.conversations.get_or_create(None)
        self.conversations.append(conversation_id, "user", TEXT)
        generation = self.conversations.require(conversation_id).generation
        table, partition = self.conversations.table, keys.messages(TENANT, generation)
        (message,) = next(table.query(partition, Keys.beginning(keys.MESSAGE)))
        for start in range(2, length + 1, TRANSACTION):
            numbers = range(start, min(start + TRANSACTION, length + 1))
            table.transact(*(Write("Put", message | {"sk": keys.message(number)}) for number in numbers))
        header = {"pk": keys.conversation(TENANT, conversation_id), "sk": keys.HEADER}
        table.write(Write("Update", header, expression="SET last_number = :length", values={":length": length}))
        return conversation_id

    def short(self) -> Iterator[str]:
        """Conversations that a bench can write to without making one longer than fifteen messages."""
        made = [self.conversation(10) for _ in range(ROUNDS // 5 + 1)]
        return (each for each in made for _ in range(5))

    def add(self, conversation_id: str) -> None:
        """Append one message."""
        self.conversations.append(conversation_id, "user", TEXT)

    def context(self, conversation_id: str) -> None:
        """Read the last six messages."""
        assert len(MessageHistory(self.conversations, conversation_id).recent(6)) == 6


class LangChainHistory:
    """LangChain's history, in a table of its own in the same store."""

    TABLE: Final = "langchain"

    def __init__(self) -> None:
        from langchain_community.chat_message_histories import (  # type: ignore[import-not-found]
            DynamoDBChatMessageHistory,
        )
        from langchain_core.messages import HumanMessage  # type: ignore[import-not-found]

        store = runtime.environment["AWS_ENDPOINT_URL_DYNAMODB"]
        boto3_client(store).create_table(
            TableName=self.TABLE,
            AttributeDefinitions=[{"AttributeName": "SessionId", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "SessionId", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        session = boto3.Session()
        self.message = HumanMessage(TEXT)
        self._history: Callable[[str], Any] = lambda session_id: DynamoDBChatMessageHistory(
            self.TABLE, session_id, endpoint_url=store, boto3_session=session
        )

    def history(self, length: int, session_id: str | None = None) -> Any:
        """Make a history of `length` messages."""
        made = self._history(session_id or uuid4().hex)
        if length:
            made.add_messages([self.message] * length)
        return made

    def add(self, history: Any) -> None:
        """Append one message."""
        history.add_message(self.message)


def _growth(server: KhoServer, ours: KhoConversations) -> bench.BenchTable:
    """Measure a call at ten messages and at twenty thousand, through each endpoint and at the store."""
    long = ours.conversation(LONG)

    def direct(method: str, conversation_id: str, **params: str) -> None:
        body = json.dumps({"conversation_id": conversation_id, **params}).encode()
        assert server.post(f"/memory-server/memory/{method}", body).status == 200

    def jsonrpc(method: str, conversation_id: str, **params: str) -> None:
        server.call(f"memory-server/memory/{method}", conversation_id=conversation_id, **params)

    message = {"role": "user", "content": TEXT}
    through: dict[tuple[str, str], Callable[[str], None]] = {
        ("add_message", "the store alone"): ours.add,
        ("add_message", "its own route"): lambda each: direct("add_message", each, **message),
        ("add_message", "`/jsonrpc`"): lambda each: jsonrpc("add_message", each, **message),
        ("get_context", "the store alone"): ours.context,
        ("get_context", "its own route"): lambda each: direct("get_context", each),
        ("get_context", "`/jsonrpc`"): lambda each: jsonrpc("get_context", each),
    }
    contenders: dict[str, Callable[[], object]] = {}
    for (method, endpoint), call in through.items():
        few = ours.short() if method == "add_message" else itertools.repeat(ours.conversation(10))
        contenders[f"{method} {endpoint} 10"] = partial(_call_next, call, few)
        contenders[f"{method} {endpoint} {LONG}"] = partial(call, long)
    timings = bench.interleaved(contenders, ROUNDS)
    rows = [
        [method, endpoint, *_compared(timings[f"{method} {endpoint} 10"], timings[f"{method} {endpoint} {LONG}"])]
        for method, endpoint in through
    ]
    columns = ["method", "through", "p50 at 10", f"p50 at {LONG:,}", "ratio", "p99 at 10", f"p99 at {LONG:,}"]
    notes = [f"{ROUNDS} rounds, each of every row's two calls. The promise: a ratio under 1.5."]
    return bench.BenchTable("A conversation's length, and what a call costs", columns, rows, notes)


def _call_next(call: Callable[[str], None], conversation_ids: Iterator[str]) -> None:
    call(next(conversation_ids))


def _beside(ours: KhoConversations, peer: LangChainHistory) -> bench.BenchTable:
    """Measure the same work by LangChain's history: one item, read and written as a whole."""
    few, short, middle = ours.short(), ours.conversation(10), ours.conversation(MIDDLE - 1)
    histories = iter([peer.history(10) for _ in range(PEER_ROUNDS + 1)])
    little, large = peer.history(10), peer.history(MIDDLE - 1)
    with consumed_capacity() as our_capacity:
        ours.add(middle)
    with _consumed(large.table.meta.client) as their_capacity:
        peer.add(large)
    timings = bench.interleaved(
        {
            "our add 10": lambda: ours.add(next(few)),
            "our add many": lambda: ours.add(middle),
            "our read 10": lambda: ours.context(short),
            "our read many": lambda: ours.context(middle),
            "their add 10": lambda: peer.add(next(histories)),
            "their add many": lambda: peer.add(large),
            "their read 10": lambda: little.messages,
            "their read many": lambda: large.messages,
        },
        PEER_ROUNDS,
    )
    rows = []
    for name, whose, capacity, kept, end in (
        ("Kho", "our", [our_capacity["write"]], _our_kept(ours), "none"),
        ("LangChain", "their", their_capacity, _their_kept(peer), f"{_their_end(peer, large):,} messages"),
    ):
        medians = [bench.ms(timings[f"{whose} {what}"].p50) for what in ("add 10", "add many", "read 10", "read many")]
        rows.append([name, *medians, f"{sum(capacity):.0f}", f"{kept} of {WRITERS * EACH}", end])
    columns = ["", "add at 10", f"add at {MIDDLE:,}", "read at 10", f"read at {MIDDLE:,}"]
    columns += [f"write units of message {MIDDLE:,}", f"kept of {WRITERS} writers", "upper limit"]
    notes = [
        f"Medians of {PEER_ROUNDS} rounds at the store; messages of {len(TEXT.encode())} bytes. We read the last six "
        "messages, LangChain's `DynamoDBChatMessageHistory` can read all of them only."
    ]
    return bench.BenchTable("Compared with LangChain's DynamoDB history, on the same local store", columns, rows, notes)


def _our_kept(ours: KhoConversations) -> int:
    conversation_id = ours.conversation(1)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(ours.add, [conversation_id] * WRITERS * EACH))
    return len(MessageHistory(ours.conversations, conversation_id).page(None, None).messages) - 1


def _their_kept(peer: LangChainHistory) -> int:
    session_id = uuid4().hex
    histories = [peer.history(0, session_id) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(peer.add, histories * EACH))
    return len(histories[0].messages)


def _their_end(peer: LangChainHistory, large: Any) -> int:
    """Return the number of messages at which a history refuses one more."""
    for step in STEPS:
        with suppress(ClientError):
            while True:
                large.add_messages([peer.message] * step)
    return len(large.messages)


@contextmanager
def _consumed(store: Any) -> Iterator[list[float]]:
    """Record the write units of each call."""
    events = store.meta.events
    units: list[float] = []

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in ("PutItem", "UpdateItem"):
            units.append(parsed["ConsumedCapacity"]["CapacityUnits"])

    events.register("before-parameter-build.dynamodb", ask)
    events.register("after-call.dynamodb", note)
    try:
        yield units
    finally:
        events.unregister("before-parameter-build.dynamodb", ask)
        events.unregister("after-call.dynamodb", note)


def _compared(small: Timing, large: Timing) -> list[str]:
    ratio = f"{large.p50 / small.p50:.2f}"
    return [bench.ms(small.p50), bench.ms(large.p50), ratio, bench.ms(small.p99), bench.ms(large.p99)]
