"""The address at which boards reach the broker, as firmware takes it: a host, with a port or not."""

import json
import re
from functools import cache
from typing import Final
from urllib.parse import quote, urlsplit

from shared.aws.signed_client import SignedServiceClient
from shared.platform.config import config
from shared.platform.http import ConnectionFailed
from shared.platform.telemetry import logger
from shared.rpc.errors import FieldProblem, InvalidRequest, NotFound, Unavailable

_TLS_PORT: Final = 8883
_MQTT_PORT: Final = 1883
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_NOWHERE: Final = ("127.0.0.1", "localhost", "0.0.0.0")  # noqa: S104 - compared, not listened on
_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 3


def board_endpoint(host_header: str) -> str:
    """Return the broker's address for a board that called `host_header`.

    It is the operator's setting, the domain that IoT Core gave the stack, or the address of the local broker. A broker
    that listens on every address, or on loopback, has the host of the public URL, or else the one that the board
    called.
    """
    settings = config()
    if settings.board_endpoint:
        return settings.board_endpoint
    if settings.mqtt_url:
        return _local_address(settings.mqtt_url, host_header)
    if settings.device_domain:
        return f"{_domain_name(settings.device_domain)}:{_TLS_PORT}"
    raise NotFound("This installation has no broker for boards.", guidance="The operator sets IotEndpoint.")


def _local_address(mqtt_url: str, host_header: str) -> str:
    broker = urlsplit(mqtt_url)
    configured = (broker.hostname, urlsplit(config().public_url).hostname)
    hosts = [each for each in configured if each and each not in _NOWHERE and ":" not in each]
    host = hosts[0] if hosts else re.sub(r":\d*$", "", host_header)
    if not _HOST.fullmatch(host):
        message = "must be a host name or an IPv4 address"
        raise InvalidRequest(f"Host {message}.", details=[FieldProblem(field="Host", message=message)])
    return f"{host}:{broker.port or _MQTT_PORT}"


@cache
def _domain_name(configuration: str) -> str:
    """Return the domain name of IoT Core's domain configuration, which CloudFormation does not return."""
    service = SignedServiceClient("iot", connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)
    try:
        status, _, body = service.request("GET", f"/domainConfigurations/{quote(configuration, safe='')}", b"", {})
    except ConnectionFailed as error:
        logger.warning("domain configuration", extra={"failure": str(error)})
        raise Unavailable("IoT Core is not answering.") from None
    finally:
        service.close()
    if status != 200:
        logger.error("domain configuration", extra={"status": status})
        raise Unavailable("IoT Core does not tell the address of the devices' endpoint.")
    name: str = json.loads(body)["domainName"]
    return name
