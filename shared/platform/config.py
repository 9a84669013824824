"""Settings from the environment, validated before the first request."""

import os
import re
from functools import cache
from typing import Literal, TypeVar, get_args
from urllib.parse import urlsplit

Auth = Literal["open", "required"]
ModelProvider = Literal["none", "bedrock", "openai"]
EmbedderKind = Literal["function", "qdrant", "bedrock"]
RerankerKind = Literal["late-interaction", "bedrock", "none"]

Choice = TypeVar("Choice", bound=str)

_HTTP_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?([/?]\S*)?")
_PUBLIC_URL = re.compile(r"https://[a-z0-9.-]+(:\d{1,5})?|http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
_BOARD_URL = re.compile(r"https?://([A-Za-z0-9.-]+|\[::1\])(:\d{1,5})?")
_BROKER_ADDRESS = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?")


class ConfigurationError(Exception):
    """A setting has an invalid value."""


class OAuthConfig:
    """The operator's settings of Kho's own OAuth server."""

    def __init__(self) -> None:
        self.address_sign_in_burst = _integer("KHO_ADDRESS_SIGN_IN_BURST", 300, at_least=1)
        self.address_sign_ins_a_minute = _integer("KHO_ADDRESS_SIGN_INS_A_MINUTE", 60, at_least=1)
        self.address_registration_burst = _integer("KHO_ADDRESS_REGISTRATION_BURST", 30, at_least=1)
        self.address_registrations_a_minute = _integer("KHO_ADDRESS_REGISTRATIONS_A_MINUTE", 5, at_least=1)
        self.sign_ins_a_minute = _integer("KHO_SIGN_INS_A_MINUTE", 1200, at_least=0)
        self.registrations_a_minute = _integer("KHO_REGISTRATIONS_A_MINUTE", 60, at_least=0)


class Config:
    """The operator's settings."""

    def __init__(self) -> None:  # noqa: PLR0915 - one statement a setting
        # Credentials are required unless `kho serve` turns them off: a missing setting must not open a deployment.
        self.auth: Auth = _choice("KHO_AUTH", get_args(Auth), "required")
        self.memory_table = os.environ.get("KHO_MEMORY_TABLE", "")
        self.documents_table = os.environ.get("KHO_DOCUMENTS_TABLE", "")
        self.knowledge_table = os.environ.get("KHO_KNOWLEDGE_TABLE", "")
        self.devices_table = os.environ.get("KHO_DEVICES_TABLE", "")
        self.experiences_table = os.environ.get("KHO_EXPERIENCES_TABLE", "")
        self.access_table = os.environ.get("KHO_ACCESS_TABLE", "")
        self.limits_table = os.environ.get("KHO_LIMITS_TABLE", "")
        self.dead_letters = os.environ.get("KHO_DEAD_LETTERS", "")
        self.mqtt_url = os.environ.get("KHO_MQTT_URL", "")
        self.mqtt_token = os.environ.get("KHO_MQTT_TOKEN", "")
        self.mqtt_keepalive = _integer("KHO_MQTT_KEEPALIVE", 240, at_least=1)
        self.iot_endpoint = os.environ.get("KHO_IOT_ENDPOINT", "")
        self.data_plane_url = os.environ.get("AWS_ENDPOINT_URL_IOT_DATA_PLANE", "")
        self.vision_url = _http_url("KHO_VISION_URL")
        self.vision_seconds = _integer("KHO_VISION_SECONDS", 18, at_least=1)
        self.board_url = _board_url("KHO_BOARD_URL")
        self.audio_server = os.environ.get("KHO_AUDIO_SERVER", "")
        self.audio_port = _integer("KHO_AUDIO_PORT", 8884, at_least=1)
        self.public_url = _public_url("KHO_PUBLIC_URL")
        self.oauth = OAuthConfig()
        self.oidc_issuer = _url("KHO_OIDC_ISSUER")
        self.oidc_audience = _required_with("KHO_OIDC_ISSUER", "KHO_OIDC_AUDIENCE")
        self.oidc_client_id = os.environ.get("KHO_OIDC_CLIENT_ID", "")
        self.oidc_scopes = os.environ.get("KHO_OIDC_SCOPES") or "openid"
        self.oidc_jwks_url = _url("KHO_OIDC_JWKS_URL")
        self.oidc_tenant_claim = os.environ.get("KHO_OIDC_TENANT_CLAIM") or "tenant_id"
        self.oidc_roles_claim = os.environ.get("KHO_OIDC_ROLES_CLAIM") or "roles"
        self.console_folder = os.environ.get("KHO_CONSOLE_FOLDER") or "/opt/console"
        self.cors_origins = _origins("KHO_CORS_ORIGINS")
        self.function_prefix = os.environ.get("KHO_FUNCTION_PREFIX", "")
        self.keep_recent_messages = _integer("KEEP_RECENT_MESSAGES", 6, at_least=1)
        self.summarize_threshold = _integer("SUMMARIZE_THRESHOLD", 10, at_least=1)
        self.compress_after_summary = _boolean("COMPRESS_AFTER_SUMMARY", default=True)
        self.auto_summary = _boolean("AUTO_SUMMARY", default=False)
        self.address_query_burst = _integer("KHO_ADDRESS_QUERY_BURST", 600, at_least=1)
        self.address_queries_a_minute = _integer("KHO_ADDRESS_QUERIES_A_MINUTE", 120, at_least=1)
        self.address_submission_burst = _integer("KHO_ADDRESS_SUBMISSION_BURST", 100, at_least=1)
        self.address_submissions_a_minute = _integer("KHO_ADDRESS_SUBMISSIONS_A_MINUTE", 10, at_least=1)
        self.anonymous_queries_a_minute = _integer("KHO_ANONYMOUS_QUERIES_A_MINUTE", 1200, at_least=0)
        self.anonymous_submissions_a_minute = _integer("KHO_ANONYMOUS_SUBMISSIONS_A_MINUTE", 120, at_least=0)
        self.board_endpoint = _broker_address("KHO_BOARD_ENDPOINT")
        self.device_domain = os.environ.get("KHO_DEVICE_DOMAIN", "")
        self.firmware_folder = os.environ.get("KHO_FIRMWARE_FOLDER", "")
        self.address_waiting_boards = _integer("KHO_ADDRESS_WAITING_BOARDS", 30, at_least=0)
        self.address_check_in_burst = _integer("KHO_ADDRESS_CHECK_IN_BURST", 600, at_least=1)
        self.address_check_ins_a_minute = _integer("KHO_ADDRESS_CHECK_INS_A_MINUTE", 120, at_least=1)
        self.check_ins_a_minute = _integer("KHO_CHECK_INS_A_MINUTE", 1200, at_least=0)
        self.device_photo_burst = _integer("KHO_DEVICE_PHOTO_BURST", 20, at_least=1)
        self.device_photos_a_minute = _integer("KHO_DEVICE_PHOTOS_A_MINUTE", 10, at_least=1)
        self.wrong_claims_a_minute = _integer("KHO_WRONG_CLAIMS_A_MINUTE", 10, at_least=1)
        self.wrong_claims_an_hour = _integer("KHO_WRONG_CLAIMS_AN_HOUR", 60, at_least=1)
        self.key_calls_a_minute = _integer("KHO_KEY_CALLS_A_MINUTE", 30_000, at_least=1)
        self.tenant_calls_a_minute = _integer("KHO_TENANT_CALLS_A_MINUTE", 120_000, at_least=1)
        self.moderators_tenant = os.environ.get("KHO_MODERATORS_TENANT") or "local"
        self.model_provider: ModelProvider = _choice("KHO_MODEL_PROVIDER", get_args(ModelProvider), "none")
        if self.auto_summary and self.model_provider == "none":
            raise ConfigurationError("AUTO_SUMMARY needs a model: set KHO_MODEL_PROVIDER and KHO_MODEL")
        self.model, self.model_url = os.environ.get("KHO_MODEL", ""), os.environ.get("KHO_MODEL_URL", "")
        self.embedder: EmbedderKind = _choice("KHO_EMBEDDER", get_args(EmbedderKind), "function")
        self.embedding_model = os.environ.get("KHO_EMBEDDING_MODEL", "")
        self.embedding_calls = _integer("KHO_EMBEDDING_CALLS", 8, at_least=1)
        self.embedding_instances = _integer("KHO_EMBEDDING_INSTANCES", 0, at_least=0)
        self.reranker: RerankerKind = _choice("KHO_RERANKER", get_args(RerankerKind), "late-interaction")
        self.rerank_model = os.environ.get("KHO_RERANK_MODEL", "")
        self.qdrant_url = _url("KHO_QDRANT_URL")
        self.qdrant_collection = os.environ.get("KHO_QDRANT_COLLECTION") or "kho"
        self.qdrant_folder = os.environ.get("KHO_QDRANT_FOLDER", "")
        self.min_free_bytes = _integer("KHO_MIN_FREE_MB", 64, at_least=0) << 20
        self.search_proxy, self.search_ca = (os.environ.get(f"KHO_SEARCH_{name}", "") for name in ("PROXY", "CA"))

    @property
    def has_index(self) -> bool:
        """Return True if a search index is configured."""
        return bool(self.qdrant_url or self.qdrant_folder)


@cache
def config() -> Config:
    """Return the settings of this process."""
    return Config()


def is_safe_url(url: str) -> bool:
    """Return True for HTTPS and for loopback addresses, whose origin can be trusted."""
    try:
        parts = urlsplit(url)
        is_loopback = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        return is_loopback or (parts.scheme == "https" and bool(parts.hostname))
    except ValueError:
        return False


def _url(name: str) -> str:
    value = os.environ.get(name, "")
    if value and not is_safe_url(value):
        raise ConfigurationError(f"{name} is '{value}'; it must begin with https:// (http:// only for this machine)")
    return value


def _http_url(name: str) -> str:
    """Return a URL that devices call, which may be of any host."""
    value = os.environ.get(name, "")
    if value and not _HTTP_URL.fullmatch(value):
        raise ConfigurationError(f"{name} is '{value}'; it must begin with http:// or https://, and name a host")
    return value


def _public_url(name: str) -> str:
    """Return the origin under which clients reach this server, from which issuer and resources are named."""
    value = os.environ.get(name, "").rstrip("/")
    if value and not _PUBLIC_URL.fullmatch(value):
        raise ConfigurationError(
            f"{name} is '{value}'; it takes an origin such as https://kho.example.com (http:// only for this machine)"
        )
    return value


def _board_url(name: str) -> str:
    """Return the origin under which boards reach this server. They know neither IPv6 nor other authorities' TLS."""
    value = os.environ.get(name, "").rstrip("/")
    if value and not _BOARD_URL.fullmatch(value):
        raise ConfigurationError(f"{name} is '{value}'; it takes an origin such as http://192.168.1.5:8001")
    return value


def _broker_address(name: str) -> str:
    """Return a broker's address as firmware takes it: without a scheme, and not of IPv6."""
    value = os.environ.get(name, "")
    if value and not _BROKER_ADDRESS.fullmatch(value):
        raise ConfigurationError(f"{name} is '{value}'; it must be a host name or an IPv4 address, with a port or not")
    return value


def _origins(name: str) -> tuple[str, ...]:
    """Return the origins of web pages that may call."""
    value = os.environ.get(name, "")
    origins = tuple(each.strip().lower() for each in value.split(",") if each.strip())
    if not all(_ORIGIN.fullmatch(each) for each in origins):
        raise ConfigurationError(f"{name} is '{value}'; it takes origins such as https://app.example.com, by commas")
    return origins


def _required_with(cause: str, name: str) -> str:
    value = os.environ.get(name, "")
    if os.environ.get(cause) and not value:
        raise ConfigurationError(f"{name} must be set if {cause} is")
    return value


def _choice(name: str, choices: tuple[Choice, ...], default: Choice) -> Choice:
    value = os.environ.get(name) or default
    for choice in choices:
        if value == choice:
            return choice
    raise ConfigurationError(f"{name} is '{value}'; it can be one of: {', '.join(choices)}")


def _integer(name: str, default: int, *, at_least: int) -> int:
    value = os.environ.get(name) or str(default)
    if not value.isdecimal() or int(value) < at_least:
        raise ConfigurationError(f"{name} is '{value}'; it must be a whole number of at least {at_least}")
    return int(value)


def _boolean(name: str, *, default: bool) -> bool:
    value = (os.environ.get(name) or str(default)).lower()
    if value not in ("true", "false", "1", "0"):
        raise ConfigurationError(f"{name} is '{value}'; it can be true or false")
    return value in ("true", "1")
