"""`make rie`: every function answers its event under the real runtime, with its own layers, on the local stores."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from tests.events import CAMERA_TOKEN, KEY, PASSWORD, REFRESH_TOKEN, event
from tests.suites.rie.console import CONSOLE, console_problems
from tests.suites.rie.embedding import PASSAGES, TOKENS, EmbeddingTimes, measure_embedding
from tests.suites.rie.emulator import Lambda, crashed, service
from tests.suites.rie.functions import deployed_functions
from tests.suites.rie.installation import TARGET, installed, version

if TYPE_CHECKING:
    from tests.suites.rie.functions import DeployedFunction

_AT_ONCE: Final = 2


def main(names: list[str]) -> int:
    """Run the functions named, or all. Return the number of wrong answers."""
    functions = deployed_functions()
    fetched = installed()
    os.environ["KHO_LOG_FILE"] = str(TARGET / "preparing.log")
    from tests.suites.rie.environment import running_environment  # its import configures the log

    failed: list[str] = []
    printing = threading.Lock()
    with running_environment() as environment:
        aws = Lambda(fetched, functions, environment)

        def run(function: DeployedFunction) -> None:
            answer, instance = aws.invoke(function.name, event(function.name))
            processor_ms = instance.processor_ms()
            problem = unexpected(function, answer) or revealed(function, instance.log)
            with printing:
                times = f"init {instance.init_ms():5.0f} ms  processor {processor_ms:5.0f} ms"
                print(f"{function.name:42} {times}  {problem or 'ok'}", flush=True)
                if problem:
                    failed.append(function.name)
                    print(instance.log)

        try:
            with service(aws, "kho-") as url, ThreadPoolExecutor(_AT_ONCE) as pool:
                aws.point_at(url)
                list(pool.map(run, [each for each in functions if not names or each.name in names]))
                if not names or CONSOLE in names:
                    problems = console_problems(aws)
                    print(f"{CONSOLE}, as a browser: {'; '.join(problems) or 'ok'}")
                    failed += [CONSOLE] if problems and CONSOLE not in failed else []
                print(_embedding_line(measure_embedding(fetched, functions, environment)))
        finally:
            aws.close()
    print(f"Python {version(fetched.python)}: {len(failed)} of {len(names or functions)} failed. {' '.join(failed)}")
    return len(failed)


def _embedding_line(times: EmbeddingTimes) -> str:
    return (
        f"The embedding function: init {times.init:.0f} ms, processor {times.processor:.0f} ms, "
        f"peak memory {times.peak_mb:.0f} MB; warm, a query takes {times.query:.0f} ms, "
        f"{PASSAGES} passages of {TOKENS} tokens {times.passages:.0f} ms"
    )


def unexpected(function: DeployedFunction, answer: bytes) -> str:
    """Return what is wrong with the answer to a function's event, or an empty string."""
    if crashed(answer):
        return f"crashed: {answer[:500]!r}"
    body: Any = json.loads(answer)
    match function.trigger:
        case "HTTP":
            is_json = body["headers"].get("content-type") == "application/json"
            refused = body["statusCode"] >= 400 or (is_json and _is_error(json.loads(body["body"])))
            return f"answered {body['statusCode']}: {body['body'][:500]}" if refused else ""
        case "stream":
            return f"left undone: {body}" if body["batchItemFailures"] else ""
        case "authorizer":
            return "" if "tenant_id" in body["context"] else f"refused: {body}"
        case "functions":
            return "" if len(body["embeddings"]) == 1 else f"answered {body}"
        case "IoT Core":
            return "" if True in body.values() else f"refused: {body}"
    return f"answered {body}" if body is not None else ""


def revealed(function: DeployedFunction, log: str) -> str:
    """Return what the function logged of its event's sentences, keys and passwords, or an empty string."""
    request: Any = json.loads(event(function.name))
    is_form = "form" in request.get("headers", {}).get("content-type", "")
    texts = [text for text in _texts(json.loads("null" if is_form else request.get("body", "null"))) if " " in text]
    leaks = [text for text in [*texts, KEY, PASSWORD, REFRESH_TOKEN, CAMERA_TOKEN] if text in log]
    return f"logged: {leaks}" if leaks else ""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in _texts(each)]


def _is_error(body: Any) -> bool:
    """Return True if a body of status 200 has an error of JSON-RPC or MCP."""
    return "error" in body or body.get("result", {}).get("isError", False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
