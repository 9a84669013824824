"""Webhooks: one address a tenant, to which the events of its devices are sent.

An event is stored in the outbox in the same transaction as the change that it tells of. Headers and signature are those
of the Standard Webhooks specification: `HMAC-SHA256(secret, "{id}.{timestamp}.{body}")`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from shared.aws.dynamodb import Keys, Write, from_item, to_item
from shared.devices import keys
from shared.devices.registry import devices_table
from shared.platform.clock import iso_time, now
from shared.platform.public_address import PublicClient, RequestLimits
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.aws.dynamodb import Item, Table

EventKind = Literal["notification", "presence", "firmware"]
EVENT_KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)
RETRY_SECONDS: Final = 86_400
"""The time for which an event is sent again. Later it is dropped."""
_TTL_SECONDS: Final = 2 * RETRY_SECONDS
"""DynamoDB deletes what even a delivery run did not drop."""
LIMITS: Final = RequestLimits(seconds=10.0, max_bytes=1 << 20)
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - no secret


@dataclass(frozen=True, slots=True)
class Webhook:
    """A tenant's receiver."""

    url: str
    events: list[EventKind]
    secret: str = field(repr=False)
    created_at: str
    id: str = ""
    """Stays while the webhook is set again. Events of a former webhook are not sent."""


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """The outcome of deliveries."""

    failing_since: str | None = None
    problem: str | None = None
    dropped: int = 0
    dropped_at: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """An event that waits to be delivered."""

    pk: str
    sk: str
    body: str
    webhook_id: str

    @property
    def at_ms(self) -> int:
        """The time of the event."""
        return int(self.sk.removeprefix(keys.EVENT).partition("#")[0])

    @property
    def id(self) -> str:
        """The id that is the same in every attempt."""
        return f"evt_{hashlib.sha256(f'{self.pk}#{self.sk}'.encode()).hexdigest()[:32]}"


class Webhooks:
    """The webhook of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._partition = keys.webhook(tenant_id)

    def set(self, url: str, events: list[EventKind], secret: str) -> Webhook:
        """Set the tenant's webhook. Events that wait go to the new address."""
        former = self.find()
        created_at, id_ = (former.created_at, former.id) if former else (now(), "")
        webhook = Webhook(url, events, secret, created_at, id_ or secrets.token_hex(8))
        self._table.write(Write("Put", self._key(keys.WEBHOOK) | to_item(webhook)))
        self._table.write(Write("Delete", self._key(keys.WEBHOOK_STATUS)))
        return webhook

    def find(self) -> Webhook | None:
        """Return the tenant's webhook, if there is one."""
        item = self._table.get(self._partition, keys.WEBHOOK)
        return from_item(Webhook, item) if item else None

    def waiting_devices(self) -> int:
        """Return the number of devices whose events wait."""
        return self._table.count(self._partition, Keys.beginning(keys.WAITING))

    def status(self) -> WebhookStatus:
        """Return the outcome of the deliveries since the webhook was set."""
        item = self._table.get(self._partition, keys.WEBHOOK_STATUS) or {}
        return from_item(WebhookStatus, item | {"dropped": int(item.get("dropped", 0))})

    def delete(self) -> Webhook:
        """Delete the webhook. The next delivery run deletes the events that wait."""
        webhook = self.find()
        if webhook is None:
            raise NotFound("There is no webhook.", guidance="'webhooks/set' sets one.")
        self._table.delete_all((self._partition, sk) for sk in (keys.WEBHOOK, keys.WEBHOOK_STATUS))
        return webhook

    def event_writes(
        self, kind: EventKind, device_id: str, at_ms: int, data: dict[str, Any], sequence: int = 0
    ) -> list[Write]:
        """Return the write that stores an event, if the tenant's webhook wants it.

        Events of a device are delivered in the order of their times and their places in a millisecond.
        """
        webhook = self.find()
        if webhook is None or kind not in webhook.events:
            return []
        content = {"type": kind, "timestamp": iso_time(at_ms / 1000), "data": {"device_id": device_id, **data}}
        body = compact(content)
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        item: Item = {
            "pk": keys.outbox(self._tenant_id, device_id),
            "sk": keys.event(f"{at_ms:013d}", f"{sequence:06d}-{digest}"),
            "body": body,
            "webhook_id": webhook.id,
            "expires_at": at_ms // 1000 + _TTL_SECONDS,
        }
        return [Write("Put", item)]

    def _key(self, sk: str) -> Item:
        return {"pk": self._partition, "sk": sk}


def new_secret() -> str:
    """Return a random secret in the format of Standard Webhooks."""
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a request: its id, its time, and the signature over both and the body."""
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "content-type": "application/json",
        "user-agent": "Kho",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def send_event(client: PublicClient, webhook: Webhook, event_id: str, body: str, at: float | None = None) -> int:
    """Send an event once, and return the status. Raise AddressRefused or AddressFailed."""
    raw = body.encode("utf-8", "surrogatepass")
    headers = signed_headers(webhook.secret, event_id, int(time.time() if at is None else at), raw)
    return client.request("POST", webhook.url, raw, headers).status


def webhook_client() -> PublicClient:
    """Return this process's client of webhooks. It follows no redirects."""
    return _client()


@cache
def _client() -> PublicClient:
    return PublicClient(LIMITS)


def webhooks(tenant_id: str) -> Webhooks:
    """Return a tenant's webhook in the configured table."""
    return Webhooks(devices_table(), tenant_id)
