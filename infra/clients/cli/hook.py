"""`kho hook`: what the plugin for Claude Code runs at a session's events."""

import json
import sys

from infra.clients.agent.backend import DEFAULT_TARGET, BackendError, BackendTarget


def hook(*, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Answer an event of a coding agent's session, given as JSON on the standard input.

    At a start it recalls earlier sessions in the folder; before compaction it saves the session; after a failed command
    it looks for solved problems. An error is reported on the standard error and never stops the session.
    """
    from infra.clients.agent.session_hooks import answer_event

    try:
        event = json.load(sys.stdin)
        answer = answer_event(event, target)
    except BackendError as error:
        sys.stderr.write(f"kho: {error.message} {error.data.get('guidance', '')}\n")
    except (ValueError, KeyError, TypeError, OSError) as error:
        sys.stderr.write(f"kho: the event is not one of Claude Code's hooks ({type(error).__name__}).\n")
    else:
        if answer:
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
