"""SAM's transform, run by the SAM command line's Python: processes the template on standard input."""

import json
import sys
from types import SimpleNamespace

from samcli.lib.translate.sam_template_validator import (  # type: ignore[import-not-found]
    SamTemplateValidator,
)
from samcli.yamlhelper import yaml_parse  # type: ignore[import-not-found]

no_managed_policies = SimpleNamespace(load=dict)
validator = SamTemplateValidator(yaml_parse(sys.stdin.read()), no_managed_policies, region="us-east-1")
json.dump(yaml_parse(validator.get_translated_template_if_valid()), sys.stdout)
