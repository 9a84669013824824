"""The clients of the suite: their packages, their versions, and the command that makes one do the plan."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.suite_packages import SHARE, node, npm_packages, python_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE: Final = Path(__file__).parent
_TARGET: Final = SHARE / "clients"
PROGRAMS: Final = HERE / "programs"
BASE_PYTHON: Final = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
"""Python without Kho's own packages."""
_CEILING_SECONDS: Final = 240
_PROMPT: Final = "Do the plan."
_NO_KEY: Final = "none"
_LINES: Final = "command_lines"


def pinned(name: str, *packages: str) -> str:
    """Return the packages with the versions that the npm lock or the Python lock of this name pins."""
    versions = {}
    if (HERE / name).is_dir():
        found = json.loads((HERE / name / "package-lock.json").read_text())["packages"]
        versions = {key.removeprefix("node_modules/"): each.get("version", "") for key, each in found.items()}
    if (lock := HERE / f"{name}.lock").exists():
        versions |= dict(re.findall(r"^([^ =]+)==([^ ]+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    return ", ".join(f"{package} {versions[package]}" for package in packages)


@dataclass(frozen=True, slots=True)
class Client:
    """A client on the API of one provider."""

    name: str
    model: str
    """The API of the provider: chat, responses, anthropic or gemini. Without one, the client reads the calls."""
    packages: str
    """The folder of the npm lock, or the name of the Python lock."""
    versions: tuple[str, ...]
    """The packages whose versions the table shows."""
    command: Callable[[Place], list[str]]
    variables: Callable[[Place], Mapping[str, str]] = lambda _place: {}
    spoils: Mapping[str, str] = field(default_factory=dict)
    """By the label of a call: the reason for which the client itself shows its model something else."""
    is_quick: bool = False

    @property
    def title(self) -> str:
        """Return the name and the API."""
        return f"{self.name}, {self.model}" if self.model else self.name

    def version(self) -> str:
        """Return the versions that the lock pins."""
        return pinned(self.packages, *self.versions)

    def run(self, kho_url: str, model_url: str, folder: Path) -> str:
        """Run the client until it has ended, and return its output."""
        place = Place(self, folder, kho_url, model_url)
        variables = {"PATH": ORIGINAL_ENVIRONMENT["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
        variables |= {"KHO_URL": kho_url, "MODEL_URL": model_url} | {**self.variables(place)}
        done = subprocess.run(
            self.command(place),
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
            timeout=_CEILING_SECONDS,
            cwd=folder,
            env=variables,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout


@dataclass(frozen=True, slots=True)
class Place:
    """A client's working folder, and the addresses that it calls."""

    client: Client
    folder: Path
    kho_url: str
    model_url: str

    def packages(self) -> Path:
        """Return the folder of the client's packages, fetched if they are missing."""
        target = _TARGET / self.client.packages
        source = HERE / self.client.packages
        return npm_packages(source, target) if source.is_dir() else python_packages(source.with_suffix(".lock"), target)


def _script(name: str, *arguments: str) -> Callable[[Place], list[str]]:
    """Return the command of a program in JavaScript, which finds packages by its own folder."""

    def command(place: Place) -> list[str]:
        copy = shutil.copy(PROGRAMS / f"{name}.mjs", place.packages().parent / f"{name}.mjs")
        return [node(), str(copy), *arguments]

    return command


def _python(name: str, *arguments: str) -> Callable[[Place], list[str]]:
    return lambda _place: [str(BASE_PYTHON), str(PROGRAMS / f"{name}.py"), *arguments]


def _its_packages(place: Place) -> dict[str, str]:
    google = {"GOOGLE_API_KEY": _NO_KEY, "GOOGLE_GEMINI_BASE_URL": place.model_url}
    return google | {"PYTHONPATH": str(place.packages()), "PYTHONDONTWRITEBYTECODE": "1"}


def mcp_remote(url: str) -> list[str]:
    """Return the command of mcp-remote, which speaks STDIO and asks an endpoint."""
    packages = npm_packages(HERE / _LINES, _TARGET / _LINES)
    return [node(), str(packages / "mcp-remote" / "dist" / "proxy.js"), url]


def _claude_code(place: Place) -> list[str]:
    program = next((place.packages() / "@anthropic-ai").glob("claude-code-*/claude"))
    settings = {"mcpServers": {"kho": {"type": "http", "url": place.kho_url}}}
    options = ["--mcp-config", json.dumps(settings), "--strict-mcp-config", "--allowedTools", "mcp__kho"]
    return [str(program), "-p", _PROMPT, *options]


def _claude_variables(place: Place) -> dict[str, str]:
    # Without its search for tools, it shows the model all of them, as it does where there are few.
    own = {"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return own | {"ANTHROPIC_API_KEY": _NO_KEY, "ANTHROPIC_BASE_URL": place.model_url}


def _codex(place: Place) -> list[str]:
    settings = {
        "model": "gpt-5",  # one without metadata of its own
        "model_provider": "planned",
        "model_providers.planned.name": "planned",
        "model_providers.planned.base_url": f"{place.model_url}/v1",
        "model_providers.planned.wire_api": "responses",
        "mcp_servers.kho.url": place.kho_url,
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
    }
    options = [each for name, value in settings.items() for each in ("-c", f"{name}={json.dumps(value)}")]
    program = place.packages() / "@openai" / "codex" / "bin" / "codex.js"
    return [node(), str(program), "exec", "--skip-git-repo-check", *options, _PROMPT]


def _gemini_cli(place: Place) -> list[str]:
    settings = {
        "mcpServers": {"kho": {"httpUrl": place.kho_url, "trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    file = place.folder / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps(settings))
    program = place.packages() / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return [node(), str(program), "-p", _PROMPT, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"]


def _gemini_variables(place: Place) -> dict[str, str]:
    own = {"GEMINI_API_KEY": _NO_KEY, "GOOGLE_GEMINI_BASE_URL": place.model_url}
    return own | {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "1"}


def _ai_sdk(model: str, packages: str = "typescript", name: str = "Vercel AI SDK") -> Client:
    return Client(name, model, packages, ("ai", "@ai-sdk/mcp"), _script("ai_sdk", model), is_quick=True)


def _langgraph(model: str) -> Client:
    versions = ("langgraph", "langchain-mcp-adapters", "mcp")
    command = _python("langgraph_agent", model)
    return Client("LangGraph", model, "langchain", versions, command, _its_packages, is_quick=True)


SDK: Final = Client(
    "TypeScript SDK", "", "typescript", ("@modelcontextprotocol/sdk",), _script("plan_of_sdk"), is_quick=True
)
CLIENTS: Final = (
    SDK,
    *map(_ai_sdk, ("chat", "responses", "anthropic", "gemini")),
    _ai_sdk("chat", "ai_sdk_6", "Vercel AI SDK 6"),  # it speaks the revision before
    *map(_langgraph, ("chat", "anthropic", "gemini")),
    Client(
        "TypeScript SDK by mcp-remote",
        "",
        _LINES,
        ("mcp-remote",),
        lambda place: _script("plan_of_sdk", *mcp_remote(place.kho_url))(replace(place, client=SDK)),
    ),
    Client("Claude Code", "anthropic", _LINES, ("@anthropic-ai/claude-code",), _claude_code, _claude_variables),
    Client("Codex", "responses", _LINES, ("@openai/codex",), _codex),
    Client(
        "Gemini CLI",
        "gemini",
        _LINES,
        ("@google/gemini-cli",),
        _gemini_cli,
        _gemini_variables,
        dict.fromkeys(("a wrong value", "an unknown argument"), "checks the tool's schema itself, and sends nothing"),
    ),
    *(
        Client(
            "openai-agents", model, "openai", ("openai-agents", "mcp"), _python("openai_agent", model), _its_packages
        )
        for model in ("chat", "responses")
    ),
    Client("Pydantic AI", "chat", "pydantic", ("pydantic-ai-slim", "mcp"), _python("pydantic_agent"), _its_packages),
    Client("Agno", "chat", "agno", ("agno", "mcp"), _python("agno_agent"), _its_packages),
    Client("Google ADK", "gemini", "adk", ("google-adk", "mcp"), _python("adk_agent"), _its_packages),
    Client("LlamaIndex", "chat", "llama", ("llama-index-tools-mcp", "mcp"), _python("llama_agent"), _its_packages),
)
