"""recall-kit: experiences that coding agents share, open to all callers."""

from typing import Final

from shared.experiences.models import ExperienceId
from shared.experiences.validation import RequiredParams
from shared.platform.config import config
from shared.rpc.caller import Caller
from shared.rpc.errors import NotAllowed
from shared.rpc.mcp_catalog import McpPrompt, McpPromptArgument

MCP_PROMPTS: Final = [
    McpPrompt(
        name="write_up_experience",
        title="Write up an experience",
        description="Turn a problem that was just solved into an experience that others can find and use.",
        text=(
            "You have just solved this problem: '{problem}'. Write it up for others who have it. First call "
            "query_experiences with the words that they would search for. If an experience already describes the "
            "problem, name it and stop. Otherwise call submit_experience. 'title' is the problem in one line, with the "
            "exact words of the error. 'problem_description' has the symptoms, the versions, and what did not help. "
            "'root_cause' is the reason, if you know it. 'solution' has the steps that worked. 'context' is the "
            "smallest code that shows the problem. Experiences are public: instead of keys, passwords, names, "
            "addresses and paths of this project, write placeholders such as <API_KEY>, <EMAIL> and <PATH>. Write in "
            "the language of the problem. At the end, report the id that was returned."
        ),
        arguments=[McpPromptArgument("problem", "The problem, and how it was solved, in a few words.", required=True)],
    )
]
PROMPTS: Final = [{"name": each.name, "description": each.description} for each in MCP_PROMPTS]


class ExperienceIdParams(RequiredParams):
    """Parameters that name an experience."""

    id: ExperienceId


def require_moderator(caller: Caller) -> None:
    """Raise NotAllowed for admins of other tenants than the operator's: experiences belong to all."""
    if caller.tenant_id != config().moderators_tenant:
        raise NotAllowed(
            "Only admins of the operator's own tenant moderate experiences.",
            guidance="Ask the operator of this server to change or delete the experience.",
        )
