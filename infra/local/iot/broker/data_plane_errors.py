"""Errors of the data plane."""

from typing import Final

_STATUS: Final = {
    "InvalidRequestException": 400,
    "ForbiddenException": 403,
    "ResourceNotFoundException": 404,
    "RequestEntityTooLargeException": 413,
    "ThrottlingException": 429,
    "GatewayTimeoutException": 504,
}


class DataPlaneError(Exception):
    """A request that IoT Core would reject. `name` is that of its exception."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.status = _STATUS[name]
