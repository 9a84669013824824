"""OpenAPI descriptions of the OAuth endpoints."""

from typing import Any, Final

from api.openapi_schemas import json_content, json_response, reference

_TEXT: Final = {"type": "string"}
_ERROR: Final = {
    "type": "object",
    "properties": {"error": _TEXT, "error_description": _TEXT},
    "required": ["error", "error_description"],
}
_OPTIONS: Final = {"resource": _TEXT, "client_id": _TEXT, "client_secret": _TEXT}


def _failures(*statuses: int, page: bool = False) -> dict[str, Any]:
    described = {"content": {"text/html": {"schema": _TEXT}}} if page else {"content": json_content(_ERROR)}
    reasons = {
        400: "An error of OAuth.",
        401: "Not a known client, or not its credentials.",
        403: "Not decided: the key is not valid, or another page sent the form.",
        404: "This server issues no tokens.",
        413: "Too large.",
        429: "Too many requests.",
        500: "Internal error.",
        503: "A store or the identity provider is not answering.",
    }
    return {str(status): {"description": reasons[status]} | described for status in (*statuses, 404, 429, 500, 503)}


def _operation(name: str, summary: str, responses: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "security": [], **keywords, "responses": responses}


def _form(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": schema}}}


def _query(required: list[str], *optional: str) -> list[dict[str, Any]]:
    names = [*required, *optional]
    return [{"name": name, "in": "query", "required": name in required, "schema": _TEXT} for name in names]


_PAGE: Final = {"description": "The page.", "content": {"text/html": {"schema": _TEXT}}}
_REDIRECT: Final = {"description": "To the client, with code, state and iss, or with an error."}

OAUTH_PATHS: Final = {
    "/.well-known/oauth-authorization-server": {
        "get": _operation(
            "oauth_metadata",
            "Authorization server metadata (RFC 8414).",
            {
                "200": json_response("The metadata.", {"type": "object", "required": ["issuer"]}),
                "404": json_response("This server issues no tokens.", reference("Failure")),
            },
        )
    },
    "/oauth/authorize": {
        "get": _operation(
            "oauth_authorize",
            "Ask a person to allow a client to use Kho (OAuth 2.1, PKCE with S256).",
            {"200": _PAGE} | _failures(400, page=True),
            parameters=_query(
                ["response_type", "client_id", "code_challenge", "code_challenge_method"],
                *("redirect_uri", "scope", "state", "resource"),
            ),
        ),
        "post": _operation(
            "oauth_decide",
            "Decide on a request: the page's own form.",
            {"303": _REDIRECT} | _failures(400, 403, 413, page=True),
            requestBody=_form(["request", "decision"], request=_TEXT, decision=_TEXT, role=_TEXT, key=_TEXT),
        ),
    },
    "/oauth/sign-in": {
        "get": _operation(
            "oauth_sign_in",
            "Go to the identity provider to sign in for a request.",
            {"303": {"description": "To the identity provider."}} | _failures(400, page=True),
            parameters=_query(["request"]),
        )
    },
    "/oauth/callback": {
        "get": _operation(
            "oauth_callback",
            "Come back from the identity provider.",
            {"200": _PAGE} | _failures(400, page=True),
            parameters=_query(["state"], "code", "iss", "error"),
        )
    },
    "/oauth/token": {
        "post": _operation(
            "oauth_token",
            "Exchange a code or a refresh token for tokens. /token is the same.",
            {
                "200": json_response("The tokens.", {"type": "object", "required": ["access_token", "token_type"]}),
                **_failures(400, 401, 413),
            },
            requestBody=_form(
                ["grant_type"],
                **dict.fromkeys(("grant_type", "code", "code_verifier", "redirect_uri", "refresh_token"), _TEXT),
                **{"scope": _TEXT} | _OPTIONS,
            ),
        )
    },
    "/oauth/register": {
        "post": _operation(
            "oauth_register",
            "Register a client (RFC 7591).",
            {
                "201": json_response("The client.", {"type": "object", "required": ["client_id", "redirect_uris"]}),
                **_failures(400, 413),
            },
            requestBody={
                "required": True,
                "content": json_content(
                    {
                        "type": "object",
                        "properties": {"redirect_uris": {"type": "array", "items": _TEXT}, "client_name": _TEXT},
                        "required": ["redirect_uris"],
                    }
                ),
            },
        )
    },
    "/oauth/revoke": {
        "post": _operation(
            "oauth_revoke",
            "Revoke a token and its grant (RFC 7009).",
            {"200": {"description": "The token is not valid, or never was."}} | _failures(400, 401, 413),
            requestBody=_form(["token"], token=_TEXT, token_type_hint=_TEXT, **_OPTIONS),
        )
    },
}
