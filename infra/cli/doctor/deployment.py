"""What is looked at in a deployed stack alone, with the operator's own AWS credentials."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

import boto3

from infra.cli.doctor import checks
from infra.cli.target import open_stores, table_name
from infra.local.template import load
from shared.config import config

if TYPE_CHECKING:
    from infra.cli.doctor.findings import CheckReport
    from infra.cli.target import DataTarget

_HEALTHY: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
_FEW_RUNS: Final = 100
_MQTT_TLS: Final = 8883


def look(where: DataTarget, findings: CheckReport) -> None:
    """Look at the stack, and at what its functions stand on."""
    stack = where.stack
    outputs = _check_stack(stack, findings)
    if "Endpoint" in outputs:
        checks.check_http_endpoint(findings, outputs["Endpoint"], "Look at the function endpoints-health and its log.")
    with open_stores(where):
        checks.check_tables(findings)
        _check_tables_care(findings)
        checks.check_keys(findings, f"kho keys create --stack {stack} --tenant <name> --role admin")
        if config().qdrant_url:
            checks.check_index(findings)
        else:
            findings.note("Qdrant", "None is configured: searches answer 503.", "Deploy with the parameter QdrantUrl.")
        checks.check_model(findings)
    _check_runs(findings)
    _check_workers(stack, findings)
    _check_dead_letters(stack, findings)
    _check_iot(findings)


def _check_stack(stack: str, findings: CheckReport) -> dict[str, str]:
    outputs: dict[str, str] = {}
    with findings.guard("Stack", "Correct --stack, or choose its region with AWS_REGION."):
        (found,) = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        if found["StackStatus"] in _HEALTHY:
            findings.good("Stack", f"{stack} is {found['StackStatus']}.")
        else:
            findings.wrong("Stack", f"{stack} is {found['StackStatus']}.", "CloudFormation's events of it say why.")
        outputs.update({each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])})
    return outputs


def _check_tables_care(findings: CheckReport) -> None:
    """Tables forget what has expired, and can be brought back as they were."""
    client = boto3.client("dynamodb")
    for definition in load().tables:
        name = table_name(definition)
        with findings.guard(name, "Deploy the template again."):
            expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
            recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
            if definition.expiry_attribute and expiry.get("AttributeName") != definition.expiry_attribute:
                findings.wrong(name, "It keeps what has expired.", "Deploy the template again.")
            if recovery != "ENABLED":
                findings.wrong(name, "It has no point-in-time recovery.", "Deploy the template again.")


def _check_runs(findings: CheckReport) -> None:
    with findings.guard("Concurrency", "It is only a look at the account's limit."):
        limit = boto3.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
        if limit < _FEW_RUNS:
            findings.note(
                "Concurrency",
                f"This account may run {limit} functions at once: a batch or a busy minute passes that.",
                "Ask for more in Service Quotas: Lambda, Concurrent executions.",
            )
        else:
            findings.good("Concurrency", f"This account may run {limit} functions at once.")


def _check_workers(stack: str, findings: CheckReport) -> None:
    client = boto3.client("lambda")
    for function in sorted({each.function for each in load().streams}):
        subject = f"Worker {function.partition('-')[2]}"
        with findings.guard(subject, "Deploy again."):
            mappings: list[Any] = client.list_event_source_mappings(FunctionName=f"{stack}-{function}")[
                "EventSourceMappings"
            ]
            states = [each.get("State", "") for each in mappings]
            if states and all(state == "Enabled" for state in states):
                findings.good(subject, "It hears of changes.")
            else:
                findings.wrong(
                    subject,
                    f"It does not hear of changes ({', '.join(states) or 'no trigger'}).",
                    "Enable its trigger.",
                )


def _check_dead_letters(stack: str, findings: CheckReport) -> None:
    with findings.guard("Dead letters", "It is only a look at the queue."):
        resource = boto3.client("cloudformation").describe_stack_resource(
            StackName=stack, LogicalResourceId="DeadLetters"
        )["StackResourceDetail"]
        attributes = boto3.client("sqs").get_queue_attributes(
            QueueUrl=resource["PhysicalResourceId"], AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]
        waiting = int(attributes["ApproximateNumberOfMessages"])
        if waiting:
            findings.wrong("Dead letters", f"Workers gave up on {waiting}.", "See dead-letters in docs/operating.md.")
        else:
            findings.good("Dead letters", "There are none.")


def _check_iot(findings: CheckReport) -> None:
    with findings.guard("Devices", "Let this machine reach IoT Core on port 8883, or look from another."):
        host = boto3.client("iot").describe_endpoint(endpointType="iot:Data-ATS")["endpointAddress"]
        with (
            socket.create_connection((host, _MQTT_TLS), timeout=5) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=host),
        ):
            findings.good("Devices", f"They can connect to {host}, port {_MQTT_TLS}.")
