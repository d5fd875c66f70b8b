"""An agent of the OpenAI Agents SDK that reads a note."""

from pathlib import Path

from agents import Agent, Runner, function_tool


@function_tool
def read_note(path: str) -> str:
    """Read a note."""
    return Path(path).read_text()


keeper = Agent(name="Keeper", instructions=f"You answer from notes in {Path.cwd()}.", tools=[read_note])
print(Runner.run_sync(keeper, "Who keeps the light?").final_output)
