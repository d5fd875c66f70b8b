"""A crew of one that reads a note."""

from pathlib import Path

from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("read_note")
def read_note(path: str) -> str:
    """Read a note."""
    return Path(path).read_text()


keeper = Agent(
    role="Keeper",
    goal="Answer from notes",
    backstory=f"You live in {Path.cwd()}.",
    tools=[read_note],
    llm="gpt-4o-mini",
)
task = Task(description="Who keeps the light?", expected_output="A name.", agent=keeper)
print(Crew(agents=[keeper], tasks=[task]).kickoff().raw)
