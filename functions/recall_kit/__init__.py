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
            "You have just solved this problem: '{problem}'. Write it up for others who run into it. First call "
            "query_experiences with the words they would search for; if an experience already describes it, stop and "
            "name it. Otherwise call submit_experience: 'title' is the problem in one line as it appears, with the "
            "exact words of the error; 'problem_description' the symptoms, the versions, and what did not help; "
            "'root_cause' the reason, if you know it; 'solution' the proven steps; 'context' the smallest code that "
            "shows the problem. It is public: use placeholders such as <API_KEY>, <EMAIL> and <PATH> instead of keys, "
            "passwords, names, addresses and paths of this project. Write in the language of the problem. Report the "
            "returned id."
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
