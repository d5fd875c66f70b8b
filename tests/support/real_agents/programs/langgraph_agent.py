"""A LangGraph agent that reads a note; its prompt holds the date and a thread id."""

import uuid
from datetime import date
from pathlib import Path

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def read_note(path: str) -> str:
    """Read a note."""
    return f"{Path(path).resolve()}:\n{Path(path).read_text()}"


prompt = f"Today is {date.today():%A, %B %d, %Y}. Thread {uuid.uuid4()}."
keeper = create_react_agent(ChatOpenAI(model="gpt-4o-mini"), [read_note], prompt=prompt)
asked = {"messages": [("user", "Who keeps the light?")]}
print(keeper.invoke(asked)["messages"][-1].content)
