"""The functions that only the owner of the workers can run, called from a worker."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import socket
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from infra.local.functions import Functions
from infra.local.workers import frames
from infra.local.workers.frames import FrameChannel
from shared.rpc.errors import KhoError, Unavailable
from shared.rpc.invocation import FunctionCrashed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from infra.local.template import FunctionDefinition, Template
    from infra.local.workers.shared_indexes import SharedIndexes
    from shared.search.embedding.models import Space

_EMBEDDING: Final = ("workers-embed_texts", "workers-embed_bulk_texts")
"""They hold the model, which is loaded once."""
_OF_BROKER: Final = {"KHO_MQTT_TOKEN", "AWS_ENDPOINT_URL_IOT_DATA_PLANE"}
"""Variables of the functions that send to devices."""


def is_owned(function: FunctionDefinition) -> bool:
    """Return True if the function needs the broker, the model, or another part that only the owner has."""
    return function.variables is None or bool(_OF_BROKER & function.variables) or function.name in _EMBEDDING


def functions_of_workers(template: Template) -> list[str]:
    """Return the modules of the functions that workers run themselves."""
    routed = {route.function for route in template.routes}
    functions = [each for name, each in template.functions.items() if name in routed and not is_owned(each)]
    return [each.handler.rpartition(".")[0] for each in functions]


class OwnerClient:
    """A worker's calls to the owner. The worker ends with the channel."""

    def __init__(self, connection: socket.socket) -> None:
        self._channel = FrameChannel(connection)
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[frames.Frame]] = {}
        threading.Thread(target=self._receive, name="owner", daemon=True).start()

    def call(self, function: str, payload: bytes, seconds: float) -> bytes:
        """Run a function in the owner. Raise TimeoutError if it has not answered in time."""
        answer = self._exchange(frames.CALL, f"{function}\n".encode() + payload, seconds)
        if answer.kind == frames.CRASHED:
            raise FunctionCrashed(function)
        return answer.payload

    def connect_to_index(self, space: Space, folder: Path, seconds: float) -> socket.socket | None:
        """Return a connection to the index of `folder`, None if it was not created because the disk is full.

        Raise what the owner raises, or TimeoutError.
        """
        answer = self._exchange(frames.INDEX, pickle.dumps((space, folder)), seconds)
        if answer.kind == frames.REFUSED:
            raise KhoError.from_record(json.loads(answer.payload))
        return None if answer.descriptor is None else socket.socket(fileno=answer.descriptor)

    def _exchange(self, kind: int, payload: bytes, seconds: float) -> frames.Frame:
        number = next(self._numbers)
        waiting: Future[frames.Frame] = Future()
        self._waiting[number] = waiting
        try:
            self._channel.send(number, kind, payload)
            return waiting.result(seconds)
        finally:
            del self._waiting[number]

    def _receive(self) -> None:
        for frame in self._channel.frames():
            if waiting := self._waiting.get(frame.number):
                waiting.set_result(frame)
            elif frame.descriptor is not None:
                os.close(frame.descriptor)
        os._exit(0)


class OwnerService:
    """The owner's side for one worker."""

    def __init__(self, connection: socket.socket, functions: Functions, indexes: SharedIndexes) -> None:
        self._channel = FrameChannel(connection)
        self._functions = functions
        self._indexes = indexes

    def run(self) -> None:
        """Answer calls until the worker has ended."""
        for frame in self._channel.frames():
            if frame.kind == frames.CALL:
                name, _, payload = frame.payload.partition(b"\n")
                running = self._functions.submit(name.decode(), payload)
                running.add_done_callback(partial(self._answer, frame.number))
            else:
                threading.Thread(target=self._send_connection, args=[frame], daemon=True).start()
        self._channel.close()

    def _answer(self, number: int, done: Future[bytes]) -> None:
        if done.cancelled() or done.exception():
            self._send(number, frames.CRASHED)
        else:
            self._send(number, frames.RESULT, done.result())

    def _send_connection(self, request: frames.Frame) -> None:
        """Send a connection to an index, which may have to be opened."""
        space, folder = pickle.loads(request.payload)  # noqa: S301 - written by a worker
        try:
            connection = self._indexes.connect(space, folder)
        except Exception as error:
            refusal = error if isinstance(error, KhoError) else Unavailable(f"The index cannot be opened: {error}.")
            self._send(request.number, frames.REFUSED, json.dumps(refusal.record()).encode())
            return
        self._send(request.number, frames.INDEX, passed=connection)
        if connection:
            connection.close()

    def _send(self, number: int, kind: int, payload: bytes = b"", passed: socket.socket | None = None) -> None:
        try:
            self._channel.send(number, kind, payload, passed)
        except OSError:
            return  # the worker has ended; its callers were answered


class WorkerFunctions(Functions):
    """The functions of a worker: those that are the owner's are called there."""

    def __init__(self, functions: Mapping[str, FunctionDefinition], owner: OwnerClient) -> None:
        super().__init__(functions)
        self._owner = owner

    def __call__(self, function: str, payload: bytes) -> bytes:
        """Run a function. Raise TimeoutError when its configured timeout is over."""
        definition = self._functions[function]
        if is_owned(definition):
            return self._owner.call(function, payload, definition.timeout)
        return super().__call__(function, payload)

    def run(self, name: str, event: Any) -> Any:
        """Run a function in this thread, without its time limit."""
        definition = self._functions[name]
        if is_owned(definition):
            return json.loads(self._owner.call(name, json.dumps(event).encode(), definition.timeout))
        return super().run(name, event)
