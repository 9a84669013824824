"""Settings from the environment, validated before the first request."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Container

Auth = Literal["open", "required"]
ModelProvider = Literal["none", "bedrock", "openai"]
EmbedderKind = Literal["function", "qdrant", "bedrock"]
RerankerKind = Literal["late-interaction", "bedrock", "none"]

Choice = TypeVar("Choice", bound=str)
T = TypeVar("T")

_SAFE_URL: Final = "must begin with https:// (http:// only for this machine)"
_HTTP_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?([/?]\S*)?")
_PUBLIC_URL = re.compile(r"https://[a-z0-9.-]+(:\d{1,5})?|http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
"""An origin, from which issuer and resources are named."""
_BOARD_URL = re.compile(r"https?://([A-Za-z0-9.-]+|\[::1\])(:\d{1,5})?")
"""An origin. Boards know neither IPv6 nor other authorities' TLS."""
_BROKER_ADDRESS = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?")
"""As firmware takes it: without a scheme, and not of IPv6."""
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?")


class ConfigurationError(Exception):
    """A setting has an invalid value, or a function reads one that it does not declare."""


function_variables: Final[ContextVar[Container[str] | None]] = ContextVar(
    "function_variables", default=frozenset(os.environ) if "AWS_LAMBDA_FUNCTION_NAME" in os.environ else None
)
"""The variables of the function that runs; None in other programs. One machine runs many functions in one process."""


def require_declared(variable: str) -> None:
    """Refuse to read a variable that the function does not declare: a default would hide what the operator has set."""
    declared = function_variables.get()
    if declared is not None and variable not in declared:
        raise ConfigurationError(f"the function reads {variable}, which its @lambda_function does not declare")


class Setting(Generic[T]):
    """One setting of `Config`: a variable, and the parser of its value."""

    def __init__(self, variable: str, parse: Callable[[str, str], T], *, local: bool = False) -> None:
        self.variable = variable
        self.parse = parse
        self.local = local
        """True if only one machine sets it: a deployed function has its default, and does not declare it."""

    def __get__(self, settings: Config, _type: type[Config]) -> T:
        """Return the setting's value."""
        if not self.local:
            require_declared(self.variable)
        value: T = settings.values[self.variable]
        return value


def is_safe_url(url: str) -> bool:
    """Return True for HTTPS and for loopback addresses, whose origin can be trusted."""
    try:
        parts = urlsplit(url)
        is_loopback = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        return is_loopback or (parts.scheme == "https" and bool(parts.hostname))
    except ValueError:
        return False


def _address(
    variable: str, matches: Callable[[str], object], requirement: str, *, ending: str = "", local: bool = False
) -> Setting[str]:
    """Return the setting of an address, which is stored without its `ending`."""

    def parse(name: str, value: str) -> str:
        value = value.rstrip(ending)
        if value and not matches(value):
            raise ConfigurationError(f"{name} is '{value}'; it {requirement}")
        return value

    return Setting(variable, parse, local=local)


def _origins(name: str, value: str) -> tuple[str, ...]:
    """Return the origins of web pages that may call."""
    origins = tuple(each.strip().lower() for each in value.split(",") if each.strip())
    if not all(_ORIGIN.fullmatch(each) for each in origins):
        raise ConfigurationError(f"{name} is '{value}'; it takes origins such as https://app.example.com, by commas")
    return origins


def _text(variable: str, default: str = "", *, local: bool = False) -> Setting[str]:
    return Setting(variable, lambda _, value: value or default, local=local)


def _choice(variable: str, choices: tuple[Choice, ...], default: Choice) -> Setting[Choice]:
    def parse(name: str, value: str) -> Choice:
        for choice in choices:
            if choice == (value or default):
                return choice
        raise ConfigurationError(f"{name} is '{value}'; it can be one of: {', '.join(choices)}")

    return Setting(variable, parse)


def _integer(variable: str, default: int, *, at_least: int, local: bool = False) -> Setting[int]:
    def parse(name: str, value: str) -> int:
        value = value or str(default)
        if not value.isdecimal() or int(value) < at_least:
            raise ConfigurationError(f"{name} is '{value}'; it must be a whole number of at least {at_least}")
        return int(value)

    return Setting(variable, parse, local=local)


def _boolean(variable: str, *, default: bool) -> Setting[bool]:
    def parse(name: str, value: str) -> bool:
        value = (value or str(default)).lower()
        if value not in ("true", "false", "1", "0"):
            raise ConfigurationError(f"{name} is '{value}'; it can be true or false")
        return value in ("true", "1")

    return Setting(variable, parse)


class Config:
    """The operator's settings."""

    # Credentials are required unless `kho serve` turns them off: a missing setting must not open a deployment.
    auth: Setting[Auth] = _choice("KHO_AUTH", get_args(Auth), "required")
    memory_table = _text("KHO_MEMORY_TABLE")
    documents_table = _text("KHO_DOCUMENTS_TABLE")
    knowledge_table = _text("KHO_KNOWLEDGE_TABLE")
    devices_table = _text("KHO_DEVICES_TABLE")
    experiences_table = _text("KHO_EXPERIENCES_TABLE")
    access_table = _text("KHO_ACCESS_TABLE")
    limits_table = _text("KHO_LIMITS_TABLE")
    dead_letters = _text("KHO_DEAD_LETTERS")
    mqtt_url = _text("KHO_MQTT_URL")
    mqtt_token = _text("KHO_MQTT_TOKEN")
    mqtt_keepalive = _integer("KHO_MQTT_KEEPALIVE", 240, at_least=1, local=True)
    iot_endpoint = _text("KHO_IOT_ENDPOINT")
    data_plane_url = _text("AWS_ENDPOINT_URL_IOT_DATA_PLANE")
    vision_url = _address("KHO_VISION_URL", _HTTP_URL.fullmatch, "must begin with http:// or https://, and name a host")
    vision_seconds = _integer("KHO_VISION_SECONDS", 18, at_least=1, local=True)
    board_url = _address(
        "KHO_BOARD_URL",
        _BOARD_URL.fullmatch,
        "takes an origin such as http://192.168.1.5:8001",
        ending="/",
        local=True,
    )
    audio_server = _text("KHO_AUDIO_SERVER")
    audio_port = _integer("KHO_AUDIO_PORT", 8884, at_least=1)
    public_url = _address(
        "KHO_PUBLIC_URL",
        _PUBLIC_URL.fullmatch,
        "takes an origin such as https://kho.example.com (http:// only for this machine)",
        ending="/",
    )
    oidc_issuer = _address("KHO_OIDC_ISSUER", is_safe_url, _SAFE_URL)
    oidc_audience = _text("KHO_OIDC_AUDIENCE")
    oidc_client_id = _text("KHO_OIDC_CLIENT_ID")
    oidc_scopes = _text("KHO_OIDC_SCOPES", "openid")
    oidc_jwks_url = _address("KHO_OIDC_JWKS_URL", is_safe_url, _SAFE_URL)
    oidc_tenant_claim = _text("KHO_OIDC_TENANT_CLAIM", "tenant_id")
    oidc_roles_claim = _text("KHO_OIDC_ROLES_CLAIM", "roles")
    console_folder = _text("KHO_CONSOLE_FOLDER", "/opt/console", local=True)
    answer_without_id = _boolean("KHO_ANSWER_WITHOUT_ID", default=False)
    client_metadata_documents = _boolean("KHO_CLIENT_METADATA_DOCUMENTS", default=True)
    cors_origins = Setting("KHO_CORS_ORIGINS", _origins)
    function_prefix = _text("KHO_FUNCTION_PREFIX")
    keep_recent_messages = _integer("KEEP_RECENT_MESSAGES", 6, at_least=1)
    summarize_threshold = _integer("SUMMARIZE_THRESHOLD", 10, at_least=1)
    compress_after_summary = _boolean("COMPRESS_AFTER_SUMMARY", default=True)
    auto_summary = _boolean("AUTO_SUMMARY", default=False)
    address_sign_in_burst = _integer("KHO_ADDRESS_SIGN_IN_BURST", 300, at_least=1)
    address_sign_ins_a_minute = _integer("KHO_ADDRESS_SIGN_INS_A_MINUTE", 60, at_least=1)
    address_registration_burst = _integer("KHO_ADDRESS_REGISTRATION_BURST", 30, at_least=1)
    address_registrations_a_minute = _integer("KHO_ADDRESS_REGISTRATIONS_A_MINUTE", 5, at_least=1)
    sign_ins_a_minute = _integer("KHO_SIGN_INS_A_MINUTE", 1200, at_least=0)
    registrations_a_minute = _integer("KHO_REGISTRATIONS_A_MINUTE", 60, at_least=0)
    address_query_burst = _integer("KHO_ADDRESS_QUERY_BURST", 600, at_least=1)
    address_queries_a_minute = _integer("KHO_ADDRESS_QUERIES_A_MINUTE", 120, at_least=1)
    address_submission_burst = _integer("KHO_ADDRESS_SUBMISSION_BURST", 100, at_least=1)
    address_submissions_a_minute = _integer("KHO_ADDRESS_SUBMISSIONS_A_MINUTE", 10, at_least=1)
    anonymous_queries_a_minute = _integer("KHO_ANONYMOUS_QUERIES_A_MINUTE", 1200, at_least=0)
    anonymous_submissions_a_minute = _integer("KHO_ANONYMOUS_SUBMISSIONS_A_MINUTE", 120, at_least=0)
    board_endpoint = _address(
        "KHO_BOARD_ENDPOINT",
        _BROKER_ADDRESS.fullmatch,
        "must be a host name or an IPv4 address, with a port or not",
    )
    device_domain = _text("KHO_DEVICE_DOMAIN")
    firmware_folder = _text("KHO_FIRMWARE_FOLDER", local=True)
    address_waiting_boards = _integer("KHO_ADDRESS_WAITING_BOARDS", 30, at_least=0)
    address_check_in_burst = _integer("KHO_ADDRESS_CHECK_IN_BURST", 600, at_least=1)
    address_check_ins_a_minute = _integer("KHO_ADDRESS_CHECK_INS_A_MINUTE", 120, at_least=1)
    check_ins_a_minute = _integer("KHO_CHECK_INS_A_MINUTE", 1200, at_least=0)
    device_photo_burst = _integer("KHO_DEVICE_PHOTO_BURST", 20, at_least=1)
    device_photos_a_minute = _integer("KHO_DEVICE_PHOTOS_A_MINUTE", 10, at_least=1)
    wrong_claims_a_minute = _integer("KHO_WRONG_CLAIMS_A_MINUTE", 10, at_least=1)
    wrong_claims_an_hour = _integer("KHO_WRONG_CLAIMS_AN_HOUR", 60, at_least=1)
    key_calls_a_minute = _integer("KHO_KEY_CALLS_A_MINUTE", 30_000, at_least=1)
    tenant_calls_a_minute = _integer("KHO_TENANT_CALLS_A_MINUTE", 120_000, at_least=1)
    moderators_tenant = _text("KHO_MODERATORS_TENANT", "local")
    model_provider: Setting[ModelProvider] = _choice("KHO_MODEL_PROVIDER", get_args(ModelProvider), "none")
    model = _text("KHO_MODEL")
    model_url = _text("KHO_MODEL_URL")
    embedder: Setting[EmbedderKind] = _choice("KHO_EMBEDDER", get_args(EmbedderKind), "function")
    embedding_model = _text("KHO_EMBEDDING_MODEL")
    embedding_calls = _integer("KHO_EMBEDDING_CALLS", 8, at_least=1)
    embedding_instances = _integer("KHO_EMBEDDING_INSTANCES", 0, at_least=0)
    reranker: Setting[RerankerKind] = _choice("KHO_RERANKER", get_args(RerankerKind), "late-interaction")
    rerank_model = _text("KHO_RERANK_MODEL")
    qdrant_url = _address("KHO_QDRANT_URL", is_safe_url, _SAFE_URL)
    qdrant_collection = _text("KHO_QDRANT_COLLECTION", "kho")
    qdrant_folder = _text("KHO_QDRANT_FOLDER", local=True)
    min_free_mb = _integer("KHO_MIN_FREE_MB", 64, at_least=0, local=True)
    message_index = _boolean("KHO_MESSAGE_INDEX", default=True)
    search_proxy = _text("KHO_SEARCH_PROXY", local=True)
    search_ca = _text("KHO_SEARCH_CA", local=True)

    def __init__(self) -> None:
        self.values: Final = {
            each.variable: each.parse(each.variable, runtime.environment.get(each.variable, ""))
            for each in self.settings()
        }
        if self.values["AUTO_SUMMARY"] and self.values["KHO_MODEL_PROVIDER"] == "none":
            raise ConfigurationError("AUTO_SUMMARY needs a model: set KHO_MODEL_PROVIDER and KHO_MODEL")
        declared = function_variables.get()
        has_audience = self.values["KHO_OIDC_AUDIENCE"] or (
            declared is not None and "KHO_OIDC_AUDIENCE" not in declared
        )
        if self.values["KHO_OIDC_ISSUER"] and not has_audience:
            raise ConfigurationError("KHO_OIDC_AUDIENCE must be set if KHO_OIDC_ISSUER is")

    @classmethod
    def settings(cls) -> list[Setting[Any]]:
        """Return every setting."""
        return [each for each in vars(cls).values() if isinstance(each, Setting)]

    @property
    def data_plane(self) -> str:
        """Return the URL of the data plane of the devices' broker. Without one, the broker reports no presence."""
        return self.data_plane_url or (f"https://{self.iot_endpoint}" if self.iot_endpoint else "")

    @property
    def has_index(self) -> bool:
        """Return True if a search index is configured."""
        return bool(self.qdrant_url or self.qdrant_folder)

    @property
    def has_message_index(self) -> bool:
        """Return True if messages are indexed, too."""
        return self.message_index and self.has_index


@cache
def config() -> Config:
    """Return the settings of this process."""
    return Config()
