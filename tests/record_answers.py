"""Record the answer to each method's event for the reference pages: `python -m tests.record_answers`.

The handlers run in this process on the data of `make rie`. `kho generate` puts the answers into `docs/reference/`.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir

from infra.deploy.reference import ANSWERS
from infra.local.environment import set_variables
from shared.rpc.catalogue import catalogue
from tests.events import TENANT, event


def main() -> None:
    """Write one file for each method that answers its event with 200."""
    os.environ.setdefault("KHO_LOG_FILE", str(Path(gettempdir()) / "kho-record-answers.log"))
    from tests.suites.rie.environment import running_environment  # its imports configure the log

    ANSWERS.mkdir(exist_ok=True)
    with running_environment():
        set_variables({"KHO_MODERATORS_TENANT": TENANT})
        # Deletions come last: the other answers are about what they delete.
        for method in sorted(catalogue().methods.values(), key=lambda method: method.name.endswith("/delete")):
            response = import_module(method.function.replace("-", ".")).handler(
                json.loads(event(method.function)), None
            )
            assert response["statusCode"] == 200, (method.name, response)
            answer = json.dumps(json.loads(response["body"]), indent=1, ensure_ascii=False)
            (ANSWERS / f"{method.function}.json").write_text(f"{answer}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
