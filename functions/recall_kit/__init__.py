"""recall-kit: experiences that coding agents share, open to everyone (seed 003)."""

from __future__ import annotations

from typing import Final

from shared.experiences.models import ExperienceId
from shared.experiences.validation import RequiredParams
from shared.rpc.mcp_catalog import McpPrompt, McpPromptArgument

MCP_PROMPTS: Final = [
    McpPrompt(
        name="write_up_experience",
        title="Write up an experience",
        description="Turn a problem that was just solved into an experience that others find and can use.",
        text=(
            "You have just solved this problem: '{problem}'. Write it up for whoever meets it next. First call "
            "query_experiences with what they would search for; where an experience says the same already, stop and "
            "name it. Else call submit_experience: 'title' is the problem in one line as it shows itself, with the "
            "error's own words; 'problem_description' what was seen, in which versions, and what did not help; "
            "'root_cause' why it happened, if you know; 'solution' what to do, step by step, as it was proven; "
            "'context' the smallest code that shows it. Everybody reads it: put placeholders such as <API_KEY>, "
            "<EMAIL> and <PATH> in the place of keys, passwords, names, addresses and paths of this project. Write in "
            "the language of the problem. Say the id that you get."
        ),
        arguments=[McpPromptArgument("problem", "The problem, and how it was solved, in a few words.", required=True)],
    )
]
PROMPTS: Final = [{"name": each.name, "description": each.description} for each in MCP_PROMPTS]


class ExperienceIdParams(RequiredParams):
    """Which experience."""

    id: ExperienceId
