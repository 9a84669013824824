"""Deployment of a function, declared at its handler: `kho generate` writes `template.yaml` from it.

A function declares the actions that it needs on each table, its dependencies, memory, time and triggers. Its IAM policy
follows from them, so each function has least privilege. The route of a method follows from its name, and a method for
anonymous callers verifies credentials itself. The types are named tuples, which a cold start creates in half the time
of dataclasses.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

TableName = Literal["Access", "Devices", "Documents", "Experiences", "Knowledge", "Limits", "Memory"]
Action = Literal[
    "BatchGetItem",
    "BatchWriteItem",
    "ConditionCheckItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
]
EventName = Literal["INSERT", "MODIFY", "REMOVE"]
Concurrency = Literal["AnonymousConcurrency", "AuthorizerConcurrency", "BulkEmbeddingConcurrency", "DeviceConcurrency"]
"""The parameter that reserves concurrency for a function."""
Provisioned = Literal["EmbeddingInstances"]
"""The parameter that provisions concurrency for a function, which is then called by its alias."""

H = TypeVar("H", bound="Callable[..., Any]")

DEVICES: Final = "WithDevices"
"""The template's condition of everything that needs IoT Core."""
DEFAULT_MEMORY: Final = 512
"""Megabytes, as `Globals` of the template sets it."""
DEFAULT_TIMEOUT: Final = 26
"""Seconds, likewise."""
INDEX_MEMORY: Final = 1769
"""Megabytes with which a function has a whole processor, to start and to rank in a third of a second."""
INDEX_RECOVERY_SECONDS: Final = 21_600
"""The time for which workers retry while the search index is unavailable."""
STREAM_SECONDS: Final = 86_400
"""The time for which a stream keeps records."""


class TableAccess(NamedTuple):
    """The DynamoDB actions that a function calls on one table."""

    table: str
    actions: tuple[str, ...]


class Dependency(NamedTuple):
    """Managed policies of `infra/template/policies.yaml`, and layers with libraries, that come together."""

    policies: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    memory: int = 0
    """The least megabytes of a function with these libraries."""
    environment: tuple[tuple[str, str], ...] = ()
    """Pairs of a variable and a resource, for this function alone. `Globals` has the variables of all."""


class TableStream(NamedTuple):
    """The stream of a table as an event source. What is too old, or failed three times, goes to the dead-letter queue.

    The function counts the attempts (api/stream_records.py), since those that a service did not answer do not count.
    """

    table: TableName
    filters: tuple[dict[str, Any], ...]
    batch_size: int
    max_age: int
    """The seconds for which the stream delivers a record again."""
    parallelization: int = 1
    event: str = "Work"
    """The event's name in the template; the logical id of the event source mapping ends with it."""


class IotRule(NamedTuple):
    """A rule of IoT Core that invokes the function with each message that `sql` selects.

    The function exists only in stacks with devices. IoT Core invokes it asynchronously: it may be late, and what fails
    is tried three times in all. So it ignores what has become obsolete meanwhile.
    """

    logical_id: str
    description: str
    sql: str


class Deployment(NamedTuple):
    """Everything that the template says of one function, besides its name."""

    uses: tuple[TableAccess | Dependency, ...] = ()
    memory: int = DEFAULT_MEMORY
    timeout: int = DEFAULT_TIMEOUT
    routes: tuple[tuple[str, str], ...] = ()
    """Pairs of an event's name and a route; the function verifies credentials itself."""
    invokes: tuple[str, ...] = ()
    """Names of methods; `agent-data/*` stands for all methods of a server, `*` for all of every server."""
    stream: TableStream | None = None
    schedule: str = ""
    """A schedule of EventBridge, such as `rate(1 minute)`, that invokes the function too."""
    rules: tuple[IotRule, ...] = ()
    condition: str = ""
    """The template's condition under which the function exists."""
    concurrency: Concurrency | None = None
    provisioned: Provisioned | None = None


PROXY_SECRET: Final = Dependency(("ProxySecretAccess", "SecretsKeyAccess"))
"""Verification of the proxy in front of the API."""
CREDENTIALS: Final = Dependency(("CredentialVerification", *PROXY_SECRET.policies), ("AccessLayer",))
"""Verification of API keys and tokens, and of the proxy in front of the API."""
PROVIDER_SECRET: Final = Dependency(("ProviderSecretAccess", "SecretsKeyAccess"))
"""Kho's own secret at the identity provider."""
SEARCH_INDEX: Final = Dependency(("QdrantKeyAccess", "SecretsKeyAccess"), memory=INDEX_MEMORY)
"""The search index, for functions that embed no text."""
EMBEDDING_INDEX: Final = SEARCH_INDEX._replace(
    policies=(*SEARCH_INDEX.policies, "EmbeddingFunctionAccess", "EmbeddingModelAccess")
)
"""The search index, and the function or model that embeds texts and queries for it."""
BULK_EMBEDDING_INDEX: Final = SEARCH_INDEX._replace(
    policies=(*SEARCH_INDEX.policies, "BulkEmbeddingFunctionAccess", "EmbeddingModelAccess")
)
"""The same for bulk work, which has an embedding function of its own."""
SPLITTING: Final = Dependency(layers=("KnowledgeLayer",))
"""Splitting of documents into passages."""
EMBEDDING_MODEL: Final = Dependency(layers=("EmbeddingLayer",), memory=INDEX_MEMORY)
"""The embedding model itself."""
RERANKING_MODEL: Final = Dependency(("RerankingModelAccess",))
LANGUAGE_MODEL: Final = Dependency(("LanguageModelAccess", "LanguageModelKeyAccess", "SecretsKeyAccess"))
DEVICE_DOWNLINK: Final = Dependency(("DeviceMessaging", "DeviceConnectionAccess"), ("DevicesLayer",))
"""Messages to devices over MQTT."""
DEVICE_MESSAGES: Final = DEVICE_DOWNLINK._replace(
    policies=(*DEVICE_DOWNLINK.policies, "VisionTokenAccess", "SecretsKeyAccess")
)
"""Sessions with devices over MQTT."""
DEVICE_CONNECTIONS: Final = Dependency(("DeviceConnectionAccess",))
"""IoT Core's record of which devices are connected."""
DEVICE_DISCONNECTION: Final = Dependency(("DeviceDisconnection",))
"""Closing the connection of a device that was revoked."""
BOARD_PASSWORDS: Final = Dependency(("DeviceSecretAccess", "SecretsKeyAccess"))
"""The secret of the passwords of claimed boards."""
WEBHOOK_DELIVERY: Final = Dependency(("WebhookDeliveryAccess",))
"""Starting the delivery of a tenant's webhook events."""
DEVICE_ENDPOINT: Final = Dependency(("DeviceEndpointAccess",), environment=(("KHO_DEVICE_DOMAIN", "DeviceEndpoint"),))
"""The address of the endpoint for devices with a password. It needs the authorizer, so no authorizer may need it."""
CONSOLE_FILES: Final = Dependency(layers=("ConsoleLayer",))
"""The bundled files of the console."""
MCP_SDK: Final = Dependency(layers=("McpLayer",))
SECRET_SCANNER: Final = Dependency(layers=("SecretsLayer",))
WEB_SEARCH: Final = Dependency(layers=("SearchLayer",))
DEAD_LETTERS: Final = Dependency(environment=(("KHO_DEAD_LETTERS", "DeadLetters"),))
"""The dead-letter queue. Each worker of a stream has it."""


def table(name: TableName, *actions: Action) -> TableAccess:
    """Name the actions on one table; a test measures that the function calls these and no others."""
    return TableAccess(f"{name}Table", actions)


def change(*events: EventName, **keys: Any) -> dict[str, Any]:
    """Build a stream's filter: kinds of change (all without any), and the keys of changed items or their prefixes."""
    kinds = {"eventName": list(events)} if events else {}
    return kinds | {"dynamodb": {"Keys": {name: {"S": [pattern]} for name, pattern in keys.items()}}}


def mcp_routes(path: str, name: str = "") -> dict[str, str]:
    """Return an MCP endpoint's routes. GET and DELETE exist to be refused: the SDK would leave the client hanging.

    The events' names begin with `name`.
    """
    return {f"{name}Message": f"POST {path}", f"{name}Stream": f"GET {path}", f"{name}EndOfSession": f"DELETE {path}"}


def lambda_function(  # noqa: PLR0913 - each is a fact of the function
    *uses: TableAccess | Dependency,
    memory: int = DEFAULT_MEMORY,
    timeout: int = DEFAULT_TIMEOUT,
    routes: dict[str, str] | None = None,
    invokes: tuple[str, ...] = (),
    stream: TableStream | None = None,
    schedule: str = "",
    rules: tuple[IotRule, ...] = (),
    condition: str = "",
    concurrency: Concurrency | None = None,
    provisioned: Provisioned | None = None,
) -> Callable[[H], H]:
    """Declare the deployment of the decorated handler."""
    memory = max([memory, *(each.memory for each in uses if isinstance(each, Dependency))])
    condition = condition or (DEVICES if rules else "")
    all_routes = tuple((routes or {}).items())
    deployment = Deployment(
        uses, memory, timeout, all_routes, invokes, stream, schedule, rules, condition, concurrency, provisioned
    )

    def decorate(handler: H) -> H:
        vars(handler)["deployment"] = deployment
        return handler

    return decorate


def deployment_of(handler: Any) -> Deployment:
    """Return what the handler declares; without a declaration, a function that needs nothing."""
    declared: Deployment = vars(handler).get("deployment", Deployment())
    return declared
