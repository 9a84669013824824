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
    """The DynamoDB actions that a function calls on one table, whose name is in its environment."""

    table: str
    actions: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The variable of the table's name."""
        return f"KHO_{self.table.removesuffix('Table').upper()}_TABLE"


class Dependency(NamedTuple):
    """Managed policies of `infra/template/policies.yaml`, and layers with libraries, that come together."""

    policies: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    memory: int = 0
    """The least megabytes of a function with these libraries."""
    variables: tuple[str, ...] = ()
    """Environment variables, whose values `Environment` of `infra/template/base.yaml` has."""


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
    routes: tuple[str, ...] = ()
    """The routes besides a method's own; the function verifies credentials itself."""
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


def variables(*names: str) -> Dependency:
    """Name environment variables that a function reads and no dependency has."""
    return Dependency(variables=names)


FUNCTION_NAMES: Final = variables("KHO_FUNCTION_PREFIX")
"""The names of the stack's functions. Each function that invokes methods has them."""
CALL_LIMITS: Final = variables("KHO_KEY_CALLS_A_MINUTE", "KHO_TENANT_CALLS_A_MINUTE")
"""The rate limits of keys and tenants. Each method has them."""
ANONYMOUS_LIMITS: Final = variables(
    "KHO_ADDRESS_QUERY_BURST",
    "KHO_ADDRESS_QUERIES_A_MINUTE",
    "KHO_ADDRESS_SUBMISSION_BURST",
    "KHO_ADDRESS_SUBMISSIONS_A_MINUTE",
    "KHO_ANONYMOUS_QUERIES_A_MINUTE",
    "KHO_ANONYMOUS_SUBMISSIONS_A_MINUTE",
)
"""The rate limits of callers without a key. Each anonymous method has them."""
PUBLIC_URL: Final = variables("KHO_PUBLIC_URL")
"""The address under which clients reach the API."""
OAUTH: Final = variables(
    *PUBLIC_URL.variables,
    "KHO_ADDRESS_SIGN_IN_BURST",
    "KHO_ADDRESS_SIGN_INS_A_MINUTE",
    "KHO_ADDRESS_REGISTRATION_BURST",
    "KHO_ADDRESS_REGISTRATIONS_A_MINUTE",
    "KHO_SIGN_INS_A_MINUTE",
    "KHO_REGISTRATIONS_A_MINUTE",
)
"""OAuth's issuer, and the rate limits of its endpoints."""
UNKNOWN_BOARD_LIMITS: Final = variables(
    "KHO_ADDRESS_CHECK_IN_BURST", "KHO_ADDRESS_CHECK_INS_A_MINUTE", "KHO_CHECK_INS_A_MINUTE"
)
"""The rate limits of boards without an owner."""
MODERATORS: Final = variables("KHO_MODERATORS_TENANT")
"""The tenant whose admins moderate experiences."""
PROXY_SECRET: Final = Dependency(("ProxySecretAccess", "SecretsKeyAccess"), variables=("KHO_PROXY_SECRET_SECRET",))
"""Verification of the proxy in front of the API."""
CREDENTIALS: Final = Dependency(
    ("CredentialVerification", *PROXY_SECRET.policies),
    ("AccessLayer",),
    variables=(
        *PROXY_SECRET.variables,
        *PUBLIC_URL.variables,
        "KHO_ACCESS_TABLE",
        "KHO_OIDC_ISSUER",
        "KHO_OIDC_AUDIENCE",
        "KHO_OIDC_JWKS_URL",
        "KHO_OIDC_TENANT_CLAIM",
        "KHO_OIDC_ROLES_CLAIM",
    ),
)
"""Verification of API keys and tokens, and of the proxy in front of the API."""
PROVIDER_SECRET: Final = Dependency(
    ("ProviderSecretAccess", "SecretsKeyAccess"),
    variables=("KHO_OIDC_CLIENT_ID", "KHO_OIDC_CLIENT_SECRET_SECRET", "KHO_OIDC_SCOPES"),
)
"""Kho's own secret at the identity provider."""
SEARCH_INDEX: Final = Dependency(
    ("QdrantKeyAccess", "SecretsKeyAccess"),
    memory=INDEX_MEMORY,
    variables=(
        "KHO_QDRANT_URL",
        "KHO_QDRANT_KEY_SECRET",
        "KHO_QDRANT_COLLECTION",
        "KHO_EMBEDDER",
        "KHO_EMBEDDING_MODEL",
        "KHO_RERANKER",
        "KHO_RERANK_MODEL",
    ),
)
"""The search index, for functions that embed no text."""
_EMBEDDING: Final = (
    *SEARCH_INDEX.variables,
    *FUNCTION_NAMES.variables,
    "KHO_EMBEDDING_CALLS",
    "KHO_EMBEDDING_INSTANCES",
)
EMBEDDING_INDEX: Final = SEARCH_INDEX._replace(
    policies=(*SEARCH_INDEX.policies, "EmbeddingFunctionAccess", "EmbeddingModelAccess"), variables=_EMBEDDING
)
"""The search index, and the function or model that embeds texts and queries for it."""
BULK_EMBEDDING_INDEX: Final = SEARCH_INDEX._replace(
    policies=(*SEARCH_INDEX.policies, "BulkEmbeddingFunctionAccess", "EmbeddingModelAccess"), variables=_EMBEDDING
)
"""The same for bulk work, which has an embedding function of its own."""
MESSAGE_INDEX: Final = variables("KHO_MESSAGE_INDEX", "KHO_QDRANT_URL")
"""The switch of the index of messages. Each function that writes or searches messages has it."""
SPLITTING: Final = Dependency(layers=("KnowledgeLayer",))
"""Splitting of documents into passages."""
PDF_EXTRACTION: Final = Dependency(layers=("PdfLayer",))
"""The library by which a child process extracts the text of PDFs."""
EMBEDDING_MODEL: Final = Dependency(layers=("EmbeddingLayer",), memory=INDEX_MEMORY)
"""The embedding model itself."""
RERANKING_MODEL: Final = Dependency(("RerankingModelAccess",))
LANGUAGE_MODEL: Final = Dependency(
    ("LanguageModelAccess", "LanguageModelKeyAccess", "SecretsKeyAccess"),
    variables=("KHO_MODEL_PROVIDER", "KHO_MODEL", "KHO_MODEL_URL", "KHO_MODEL_KEY_SECRET"),
)
DATA_PLANE: Final = variables("KHO_IOT_ENDPOINT", "AWS_ENDPOINT_URL_IOT_DATA_PLANE")
"""The address of IoT Core, which knows the devices that are connected."""
DEVICE_DOWNLINK: Final = Dependency(
    ("DeviceMessaging", "DeviceConnectionAccess"),
    ("DevicesLayer",),
    variables=(*DATA_PLANE.variables, "KHO_MQTT_URL", "KHO_MQTT_TOKEN"),
)
"""Messages to devices over MQTT."""
DEVICE_MESSAGES: Final = DEVICE_DOWNLINK._replace(
    policies=(*DEVICE_DOWNLINK.policies, "VisionTokenAccess", "SecretsKeyAccess"),
    variables=(
        *DEVICE_DOWNLINK.variables,
        *PUBLIC_URL.variables,
        "KHO_VISION_URL",
        "KHO_VISION_TOKEN_SECRET",
        "KHO_MODEL_PROVIDER",
    ),
)
"""Sessions with devices over MQTT."""
DEVICE_CONNECTIONS: Final = Dependency(("DeviceConnectionAccess",), variables=DATA_PLANE.variables)
"""IoT Core's record of which devices are connected."""
DEVICE_DISCONNECTION: Final = Dependency(("DeviceDisconnection",), variables=DATA_PLANE.variables)
"""Closing the connection of a device that was revoked."""
BOARD_PASSWORDS: Final = Dependency(
    ("DeviceSecretAccess", "SecretsKeyAccess"), variables=("KHO_DEVICE_SECRET", "KHO_DEVICE_SECRET_SECRET")
)
"""The secret of the passwords of claimed boards."""
WEBHOOK_DELIVERY: Final = Dependency(("WebhookDeliveryAccess",), variables=FUNCTION_NAMES.variables)
"""Starting the delivery of a tenant's webhook events."""
DEVICE_ENDPOINT: Final = Dependency(
    ("DeviceEndpointAccess",),
    variables=("KHO_DEVICE_DOMAIN", "KHO_BOARD_ENDPOINT", "KHO_MQTT_URL", *PUBLIC_URL.variables),
)
"""The address of the endpoint for devices with a password. It needs the authorizer, so no authorizer may need it."""
CONSOLE_FILES: Final = Dependency(layers=("ConsoleLayer",))
"""The bundled files of the console."""
MCP_SDK: Final = Dependency(layers=("McpLayer",), variables=("KHO_CORS_ORIGINS", *PUBLIC_URL.variables))
"""The MCP endpoints."""
SECRET_SCANNER: Final = Dependency(layers=("SecretsLayer",))
WEB_SEARCH: Final = Dependency(layers=("SearchLayer",))
DEAD_LETTERS: Final = variables("KHO_DEAD_LETTERS")
"""The dead-letter queue. Each worker of a stream has it."""


def table(name: TableName, *actions: Action) -> TableAccess:
    """Name the actions on one table; a test measures that the function calls these and no others."""
    return TableAccess(f"{name}Table", actions)


def change(*events: EventName, **keys: Any) -> dict[str, Any]:
    """Build a stream's filter: kinds of change (all without any), and the keys of changed items or their prefixes."""
    kinds = {"eventName": list(events)} if events else {}
    return kinds | {"dynamodb": {"Keys": {name: {"S": [pattern]} for name, pattern in keys.items()}}}


def mcp_routes(*paths: str) -> tuple[str, ...]:
    """Return an MCP endpoint's routes. GET and DELETE exist to be refused: the SDK would leave the client hanging."""
    return tuple(f"{verb} {path}" for path in paths for verb in ("POST", "GET", "DELETE"))


def lambda_function(  # noqa: PLR0913 - each is a fact of the function
    *uses: TableAccess | Dependency,
    memory: int = DEFAULT_MEMORY,
    timeout: int = DEFAULT_TIMEOUT,
    routes: tuple[str, ...] = (),
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
    deployment = Deployment(
        uses, memory, timeout, routes, invokes, stream, schedule, rules, condition, concurrency, provisioned
    )

    def decorate(handler: H) -> H:
        vars(handler)["deployment"] = deployment
        return handler

    return decorate


def deployment_of(handler: Any) -> Deployment:
    """Return what the handler declares; without a declaration, a function that needs nothing."""
    declared: Deployment = vars(handler).get("deployment", Deployment())
    return declared
