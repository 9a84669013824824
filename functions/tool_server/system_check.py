"""tool-server/system/check: check what this installation depends on, as `kho doctor` does."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, LANGUAGE_MODEL, MESSAGE_INDEX, lambda_function, table, variables
from api.handler import method
from shared.rpc.caller import Caller
from shared.rpc.method import Params
from shared.services.diagnostics import CheckReport, State, check_index, check_keys, check_model, check_stores


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `note` is a limitation, not an error; `advice` says what to do, if anything."""

    subject: Annotated[str, Field(description="the part that was checked")]
    state: Annotated[State, Field(description="`good`, `note` or `wrong`")]
    message: Annotated[str, Field(description="the result in a sentence")]
    advice: Annotated[str, Field(description="the advice, or an empty string")]


@dataclass(frozen=True, slots=True)
class SystemCheck:
    """The findings; `healthy` is true if no check failed."""

    healthy: Annotated[bool, Field(description="true if no check failed")]
    findings: Annotated[list[Finding], Field(description="the results, in the order of the checks")]


@lambda_function(
    EMBEDDING_INDEX,
    LANGUAGE_MODEL,
    MESSAGE_INDEX,
    variables("KHO_OIDC_ISSUER"),
    table("Access", "GetItem", "Query"),
    table("Devices", "GetItem"),
    table("Documents", "GetItem"),
    table("Experiences", "GetItem"),
    table("Knowledge", "GetItem"),
    table("Limits", "GetItem"),
    table("Memory", "GetItem"),
)
@method("tool-server/system/check", role="admin")
def handler(_params: Params, caller: Caller) -> SystemCheck:
    """Check tables, the tenant's keys, embedding, index and language model. A failure reveals no address or name."""
    report = CheckReport(detailed=False)
    check_stores(report)
    check_keys(report, "kho keys create --tenant <name> --role writer", caller.tenant_id)
    check_index(report)
    check_model(report)
    findings = [Finding(each.subject, each.state, each.message, each.advice) for each in report.results]
    return SystemCheck(report.healthy, findings)
