"""Error responses of the data plane."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError


def data_plane_error(call: Any, **arguments: Any) -> tuple[int, str, str]:
    """Return the status, the error's name and its message."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    answer = refused.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer["Error"]["Message"]
