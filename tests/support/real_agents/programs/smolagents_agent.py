"""A smolagents agent that reads a note."""

from pathlib import Path

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def read_note(path: str) -> str:
    """Read a note.

    Args:
        path: Where it is.
    """
    return f"{Path(path).resolve()}:\n{Path(path).read_text()}"


model = OpenAIServerModel(model_id="gpt-4o-mini")
print(ToolCallingAgent(tools=[read_note], model=model, max_steps=4).run("Who keeps the light?"))
