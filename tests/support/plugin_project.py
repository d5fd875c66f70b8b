"""A user's project whose tests are marked: its files, and pytest run in it as a user does."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from support.answers import anthropic_message, openai_chat, openai_stream
from support.cli import KEYS, PATIENCE, Result, plain_environment, run
from support.lab import Lab
from support.script import Answer, Request

OTHER_PLUGINS = ("hypothesispytest", "anyio", "asyncio", "recording", "timeout", "xdist", "xdist.looponfail")

SDK_AGENT = """
import json
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI

SYSTEM = "You are terse."


def messages(question):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def ask(question):
    done = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages(question))
    return done.choices[0].message.content


def ask_streamed(question):
    chunks = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages(question), stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


async def ask_async(question):
    async with AsyncOpenAI() as client:
        done = await client.chat.completions.create(model="gpt-4o-mini", messages=messages(question))
    return done.choices[0].message.content


def work(order):
    client, said = Anthropic(), [{"role": "user", "content": f"refund {order}"}]
    while True:
        answer = client.messages.create(model="claude-sonnet-5-5", max_tokens=100, system=SYSTEM, messages=said)
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.content[0].text
        ran = [{"type": "tool_result", "tool_use_id": one.id, "content": json.dumps({"ran": one.name})} for one in uses]
        spoken = [block.model_dump(exclude_none=True) for block in answer.content]
        said += [{"role": "assistant", "content": spoken}, {"role": "user", "content": ran}]
"""
"""An agent on the vendors' own SDKs."""

AGENT = """
import json
import os
import urllib.request

SYSTEM = "You are terse."


def ask(question, system=None):
    messages = [{"role": "system", "content": system or SYSTEM}, {"role": "user", "content": question}]
    body = json.dumps({"model": "gpt-4o-mini", "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request("https://api.openai.com/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def ask_and_swallow(question):
    try:
        return ask(question)
    except Exception:
        return "I do not know."
"""
"""One question, one answer, and nothing that takes long to import."""


def provider(request: Request) -> Answer:
    """Answers what it was asked; asks for two tools, one after the other, before it refunds anything."""
    asked = request.json()
    if request.path == "/v1/messages":
        turns = len(asked["messages"])
        if turns < 5:
            name = ("lookup_account", "refund")[turns // 2]
            return anthropic_message(request, "", tools=[(name, {"turn": turns})])
        return anthropic_message(request, "Refunded.")
    question = asked["messages"][-1]["content"]
    if asked.get("stream"):
        return openai_stream(request, ["about ", question])
    return openai_chat(request, f"about {question}")


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with an ini file of its own."""

    lab: Lab
    folder: Path
    without: tuple[str, ...] = ("hypothesispytest",)
    """Plugins that are not loaded; every one of them takes its time."""

    @classmethod
    def create(
        cls, lab: Lab, *, ini: str = "", agent: str = AGENT, without: tuple[str, ...] = OTHER_PLUGINS
    ) -> "Project":
        project = cls(lab, lab.folder / "project", without)
        project.write("pytest.ini", f"[pytest]\npythonpath = .\n{dedent(ini)}")
        project.write("agent.py", agent)
        return project

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return file

    def cassettes(self) -> list[str]:
        """All there are, relative to the project."""
        kept = (file.relative_to(self.folder) for file in self.folder.rglob("*.rw*"))
        return sorted(file.as_posix() for file in kept if ".rewind" not in file.parts)

    def pytest(
        self, *args: str, env: Mapping[str, str] | None = None, keys: bool = True, cwd: Path | None = None
    ) -> Result:
        """Run it. Where something goes live it goes to the scripted provider, under the real providers' names."""
        return run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *self.words, *args],
            self.environment(keys=keys) | dict(env or {}),
            cwd=cwd or self.folder,
            timeout=PATIENCE,
        )

    @property
    def words(self) -> list[str]:
        to = f"127.0.0.1:{self.lab.provider.port}"
        detours = [f"--rewind-connect-to={host}:443:{to}" for host in self.lab.hosts]
        return [f"-pno:{name}" for name in ("cacheprovider", *self.without)] + detours

    def environment(self, *, keys: bool = True) -> dict[str, str]:
        variables = {"REWIND_UPSTREAM_CA": str(self.lab.trust.ca_file), "COLUMNS": "120"}
        return plain_environment(self.lab.home, **variables, **(KEYS if keys else {}))

    def offline(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """With the provider gone, no key, and the count of its visitors held still."""
        self.lab.provider.go_away()
        before = self.lab.provider.connections
        result = self.pytest(*args, env=env, keys=False)
        assert self.lab.provider.connections == before, "a test went to the network"
        return result


def outcomes(result: Result) -> dict[str, int]:
    """``{"passed": 3, "failed": 1}`` from pytest's last line."""
    found = re.findall(r"(\d+) (passed|failed|error|skipped|xfailed|xpassed)", result.text.splitlines()[-1])
    return {word: int(number) for number, word in found}


def rewind_line(result: Result) -> str:
    """The plugin's line in the summary."""
    lines = [line for line in result.text.splitlines() if line.startswith("rewind: ")]
    assert lines, result.text
    return lines[-1]
