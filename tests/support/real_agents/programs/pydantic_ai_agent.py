"""An agent of Pydantic AI that reads a note; its prompt holds the time and the folder."""

from datetime import datetime
from pathlib import Path

from pydantic_ai import Agent

keeper = Agent(
    "openai:gpt-4o-mini", system_prompt=f"It is {datetime.now().isoformat()}. You answer from notes in {Path.cwd()}."
)


@keeper.tool_plain
def read_note(path: str) -> str:
    """Read a note."""
    return Path(path).read_text()


print(keeper.run_sync("Who keeps the light?").output)
