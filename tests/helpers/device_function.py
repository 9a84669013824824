"""The function that calls devices, in its own process: one call a line in, one answer a line out."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from device_server.tools_call import handler
from shared.rpc.caller import LOCAL
from tests.helpers.patience import be_patient


def _answer(params: dict[str, Any]) -> None:
    call = {"method": "", "params": params, "caller": LOCAL.record(), "correlation_id": "in-a-process"}
    print(json.dumps(handler(call, None)) + "\n", end="", flush=True)


with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(20) as callers:
    be_patient(patch)
    for line in sys.stdin:
        callers.submit(_answer, json.loads(line))
