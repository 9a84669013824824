"""The functions' logs, made from what the template deploys: a nested stack, for one stack holds 500 resources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from infra.local.template import logical_id

if TYPE_CHECKING:
    from infra.local.template import Template

FILE: Final = Path(__file__).with_name("logs.yaml")
_HEAD: Final = "# Made by `make generate` from template.yaml: see infra/deploy/logs.py.\n"


def logs(template: Template) -> str:
    """A log group for each function, that keeps what it has for a limited time."""
    made: dict[str, Any] = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Kho - each function's log.",
        "Parameters": {
            "Stack": {"Type": "String", "Description": "The name of the stack whose functions these are."},
            "RetentionDays": {"Type": "Number", "Description": "How long what they log is kept."},
        },
        "Resources": {logical_id(function): _group(function) for function in sorted(template.functions)},
    }
    return _HEAD + yaml.safe_dump(made, sort_keys=False, default_flow_style=None, width=150)


def _group(function: str) -> dict[str, Any]:
    return {
        "Type": "AWS::Logs::LogGroup",
        "UpdateReplacePolicy": "Delete",
        "DeletionPolicy": "Delete",
        "Properties": {
            "LogGroupName": {"Fn::Sub": f"/kho/${{Stack}}/{function}"},
            "RetentionInDays": {"Ref": "RetentionDays"},
        },
    }
