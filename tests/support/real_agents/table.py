"""The agents: what they are, how they are started, and which tool their model asks for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.real_agents.provider import ERRAND, Script
from support.real_agents.speech import ToolUse

HERE = Path(__file__).parent
INSTALLED = Path(os.environ.get("REWIND_AGENTS_DIR") or HERE.parents[2] / ".agents")
"""One folder per install: a virtual environment, or a ``node_modules``."""
QUESTION = "Who keeps the light?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one run happens: its project, its home and its folder for temporary files."""

    project: Path
    home: Path
    temporary: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RealAgent:
    """One agent that people use."""

    name: str
    install: str
    """The folder under ``INSTALLED``; one install may serve several agents."""
    command: Callable[[Path, Place], list[str]]
    """Its command line, from where it is installed and where it runs."""
    script: Script
    program: str = ""
    """A file of ``programs`` that is copied into the project."""
    prepare: Callable[[Place], None] = lambda _place: None
    """Writes the settings it wants in its home."""
    hosts: tuple[str, ...] = ()
    """Hosts that are recorded besides those of LLM APIs."""
    rota: bool = False
    """True if every ``make test`` runs it; the others have their turn in ``make test-all``."""
    static: bool = False
    """True if no library can be put under its clock: its date is shifted by its time zone."""


READ_NOTE = Script(ToolUse("read_note", {"path": "note.txt"}))


def _written_with(name: str, install: str, program: str, *, rota: bool = True) -> RealAgent:
    """A program of ours, written with a library for agents."""

    def command(installed: Path, _place: Place) -> list[str]:
        runner = "node" if program.endswith(".mjs") else str(installed / "bin" / "python")
        return [runner, program]

    return RealAgent(name=name, install=install, program=program, command=command, script=READ_NOTE, rota=rota)


def _claude(installed: Path, _place: Place) -> list[str]:
    binary = next((installed / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude"))
    return [str(binary), "-p", QUESTION, "--allowedTools", "Bash,Read,Task,Agent"]


def _codex(installed: Path, _place: Place) -> list[str]:
    binary = installed / "node_modules" / ".bin" / "codex"
    return [str(binary), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", QUESTION]


def _codex_settings(place: Place) -> None:
    """Codex asks for a WebSocket first, seven times, unless it is told that its provider has none."""
    folder = place.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model_provider = "lab"\n[model_providers.lab]\nname = "OpenAI"\nbase_url = "https://api.openai.com/v1"\n'
        'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nsupports_websockets = false\n'
    )


def _gemini(installed: Path, _place: Place) -> list[str]:
    return [str(installed / "node_modules" / ".bin" / "gemini"), "--yolo", "--skip-trust", "-p", QUESTION]


def _gemini_settings(place: Place) -> None:
    folder = place.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text('{"security":{"auth":{"selectedType":"gemini-api-key"}}}')


def _aider(installed: Path, _place: Place) -> list[str]:
    # Without --no-analytics it draws lots whether it sends any, and fetches more for those.
    quiet = "--yes-always --no-git --no-check-update --no-show-release-notes --no-analytics"
    test = ["--auto-test", "--test-cmd", "sh check.sh", "--message", QUESTION, "answer.txt"]
    return [str(installed / "bin" / "aider"), "--model", "gpt-4o-mini", "--edit-format", "diff", *quiet.split(), *test]


def _aider_files(place: Place) -> None:
    (place.project / "answer.txt").write_text("Nobody.\n")
    (place.project / "check.sh").write_text("pwd; cat note.txt; grep -q Ottoline answer.txt\n")


def _llm(installed: Path, _place: Place) -> list[str]:
    function = 'def read_note(path: str) -> str:\n    "Read a note."\n    return path + open(path).read()\n'
    return [str(installed / "bin" / "llm"), "-m", "gpt-4o-mini", "--functions", function, QUESTION]


def _opencode(installed: Path, _place: Place) -> list[str]:
    binary = min((installed / "node_modules").glob("opencode-*/bin/opencode"))
    return [str(binary), "run", "--model", "anthropic/claude-sonnet-4-5", QUESTION]


CODEX_SOURCE = 'text(JSON.stringify(await tools.exec_command({cmd: "pwd && cat note.txt"})))'
# Aider has no tools: it writes what the model says into files and runs the user's tests, whose output it sends.
AIDER_EDIT = """answer.txt
```
<<<<<<< SEARCH
{old}
=======
{new}
>>>>>>> REPLACE
```
"""
LOOK = "pwd && cat note.txt"


def _bash(command: str, name: str = "Bash") -> ToolUse:
    return ToolUse(name, {"command": command, "description": "Read the note"})


def _errands(*seconds: float) -> tuple[tuple[ToolUse, ToolUse], ...]:
    """Sub-agents of Claude Code that read the note after so long, each in turn: results come as they are ready."""
    return tuple((_delegation(number), _bash(f"sleep {wait}; {LOOK}")) for number, wait in enumerate(seconds))


def _delegation(number: int) -> ToolUse:
    prompt = f"{ERRAND} {number}: read note.txt and say what it says."
    words = {"description": "Read the note", "prompt": prompt, "subagent_type": "general-purpose"}
    return ToolUse("Agent", words)


AGENTS: tuple[RealAgent, ...] = (
    _written_with("openai-agents", "python-sdks", "openai_agents.py"),
    _written_with("pydantic-ai", "python-sdks", "pydantic_ai_agent.py"),
    _written_with("langgraph", "python-sdks", "langgraph_agent.py"),
    _written_with("smolagents", "python-sdks", "smolagents_agent.py"),
    _written_with("crewai", "crewai", "crewai_agent.py", rota=False),
    _written_with("openai-agents-js", "node-sdks", "openai_agents.mjs"),
    _written_with("ai-sdk", "node-sdks", "ai_sdk.mjs"),
    RealAgent(name="llm", install="python-sdks", command=_llm, script=READ_NOTE, rota=True),
    RealAgent(name="claude-code", install="claude-code", command=_claude, script=Script(_bash(LOOK)), rota=True),
    RealAgent(
        name="claude-code with a sub-agent",
        install="claude-code",
        command=_claude,
        script=Script(errands=_errands(0)),
        rota=True,
    ),
    RealAgent(
        name="claude-code, three sub-agents",
        install="claude-code",
        command=_claude,
        script=Script(errands=_errands(0, 1.5, 3)),
    ),
    RealAgent(
        name="codex",
        install="codex",
        command=_codex,
        prepare=_codex_settings,
        script=Script(ToolUse("exec", {}, source=CODEX_SOURCE)),
        static=True,
        rota=True,
    ),
    RealAgent(
        name="codex, sockets first",
        install="codex",
        command=_codex,
        script=Script(ToolUse("exec", {}, source=CODEX_SOURCE)),
        static=True,
    ),
    RealAgent(
        name="gemini-cli",
        install="gemini-cli",
        command=_gemini,
        prepare=_gemini_settings,
        script=Script(ToolUse("run_shell_command", {"command": LOOK})),
    ),
    RealAgent(name="opencode", install="opencode", command=_opencode, script=Script(_bash(LOOK, "bash"))),
    RealAgent(
        name="aider",
        install="aider",
        command=_aider,
        # It says so when it cannot fetch this list of prices, and a day later it fetches it again.
        hosts=("raw.githubusercontent.com",),
        prepare=_aider_files,
        script=Script(
            opening=AIDER_EDIT.format(old="Nobody.", new="I do not know."),
            closing=AIDER_EDIT.format(old="I do not know.", new="{note}"),
        ),
    ),
)
