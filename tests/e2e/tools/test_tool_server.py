"""tool-server through its endpoints: a chatbot's search results for each behaviour of DuckDuckGo."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.helpers.duckduckgo import DuckDuckGoProxy, duckduckgo
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL: Final = "tool-server/tools/call"
SEARCH: Final = "duckduckgo_search"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDuckGoProxy]:
    """Yield DuckDuckGo on loopback."""
    with duckduckgo(tmp_path_factory.mktemp("duckduckgo")) as running:
        yield running


@pytest.fixture(scope="module")
def server(proxy: DuckDuckGoProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server that searches through the proxy."""
    settings = {"KHO_SEARCH_PROXY": proxy.address, "KHO_SEARCH_CA": str(proxy.authority)}
    with KhoServer(tmp_path_factory.mktemp("kho") / "data", environment=settings, production_limits=True) as running:
        yield running


def test_search_result_has_the_contracts_form(server: KhoServer, proxy: DuckDuckGoProxy) -> None:
    answer = server.call(CALL, name=SEARCH, arguments={"query": "sâu răng nguyên nhân"})
    assert proxy.queries[-1] == "sâu răng nguyên nhân"
    assert set(answer) == {"content", "structuredContent"}
    results = answer["structuredContent"]["results"]
    assert len(results) == 5
    assert results[0]["title"] == "Sâu răng: Nguyên nhân, triệu chứng & cách điều trị"
    assert results[3] == {
        "title": "蛀牙（龋齿）- 维基百科",
        "content": "蛀牙是由细菌引起的牙齿硬组织疾病，𠮷祥。",
        "link": "https://zh.wikipedia.org/wiki/%E8%9B%80%E7%89%99",
    }
    assert answer["content"] == [
        {
            "type": "text",
            "text": "\n".join(
                f"Title: {each['title']}\nContent: {each['content']}\nLink: {each['link']}\n---" for each in results
            ),
        }
    ]
    assert "y.js" not in json.dumps(answer)


def test_direct_route_returns_the_same(server: KhoServer) -> None:
    params = {"name": SEARCH, "arguments": {"query": "蛀牙的原因"}}
    response = server.post(f"/{CALL}", json.dumps(params).encode())
    assert response.status == 200
    assert json.loads(response.data) == server.call(CALL, **params)
    refused = server.post(f"/{CALL}", json.dumps({"name": SEARCH, "arguments": {"query": "429"}}).encode())
    assert refused.status == 502
    assert json.loads(refused.data)["error"]["code"] == "TOOL_FAILED"


def test_empty_search_result_is_reported(server: KhoServer) -> None:
    assert server.call(CALL, name=SEARCH, arguments={"query": "nothing is found"}) == {
        "content": [{"type": "text", "text": "No results found."}],
        "structuredContent": {"results": []},
    }


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("challenge", "DuckDuckGo refuses to search for us now (HTTP 202)."),
        ("challenge with status 200", "DuckDuckGo requires a proof that a person is searching."),
        ("500", "DuckDuckGo is failing (HTTP 500)."),
        ("empty", "DuckDuckGo returned an empty page."),
        ("garbage", "DuckDuckGo returned a page without search results."),
        ("reset", "The connection to DuckDuckGo failed."),
    ],
)
def test_failed_search_reports_the_cause(server: KhoServer, query: str, said: str) -> None:
    assert server.error(CALL, name=SEARCH, arguments={"query": query}) == {
        "code": -32002,
        "message": said,
        "data": {
            "code": "TOOL_FAILED",
            "details": {"tool": SEARCH},
            "guidance": "Try again in a minute, or answer without the web.",
        },
    }


def test_slow_searches_end_and_delay_no_other_call(server: KhoServer, proxy: DuckDuckGoProxy) -> None:
    def search(query: str) -> Any:
        return server.error(CALL, name=SEARCH, arguments={"query": query})

    before = len(proxy.queries)
    with ThreadPoolExecutor(max_workers=20) as pool:
        searches = [pool.submit(search, query) for query in ("silent", "trickle") * 10]
        until(lambda: len(proxy.queries) == before + 20 or all(each.done() for each in searches))
        message = {"conversation_id": "busy", "role": "user", "content": "meanwhile"}
        server.call("memory-server/memory/add_message", **message)
        assert not all(each.done() for each in searches)
        for each in searches:
            error = each.result()
            assert (error["code"], error["message"]) == (-32002, "DuckDuckGo did not answer within 8 s.")


def test_an_unknown_tool(server: KhoServer) -> None:
    error = server.error(CALL, name="no_such_tool", arguments={"query": "x"})
    assert (error["code"], error["data"]["code"]) == (-32001, "NOT_FOUND")
    assert "no_such_tool" in error["message"]
    assert SEARCH in error["data"]["guidance"]


@pytest.mark.parametrize(
    "arguments", [None, {}, {"query": None}, {"query": 7}, {"query": ""}, {"query": " \n\t"}, {"query": "x" * 1001}]
)
def test_invalid_arguments_are_named(
    server: KhoServer, proxy: DuckDuckGoProxy, arguments: dict[str, Any] | None
) -> None:
    before = len(proxy.queries)
    error = server.error(CALL, name=SEARCH, **({} if arguments is None else {"arguments": arguments}))
    assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_PARAMS")
    assert [each["field"] for each in error["data"]["details"]] == ["arguments.query"]
    assert "Value error" not in json.dumps(error)
    assert len(proxy.queries) == before


def test_unknown_arguments_are_ignored(server: KhoServer) -> None:
    answer = server.call(CALL, name=SEARCH, arguments={"query": "x" * 1000, "max_results": 3, "了": {"deep": [1]}})
    assert len(answer["structuredContent"]["results"]) == 5
