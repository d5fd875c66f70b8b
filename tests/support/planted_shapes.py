"""The programs that changes are planted in: agents of the common kinds, with four to a dozen calls each."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from rewind.model.message import ToolDefinition
from support.planted_script import Scenario, Setting, Talk, Turn, Use
from support.planted_trades import DOMAINS
from support.planted_world import Domain, Tool

MODELS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"),
    "chat": ("gpt-4o", "gpt-4o-mini", "gpt-4.1"),
    "responses": ("gpt-5", "gpt-5-mini", "o4-mini"),
    "gemini": ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-flash"),
}
SNAPSHOTS = ("20250929", "20251101", "20260115")


def snapshot_of(model: str, number: int = 0) -> str:
    """The dated name under which a model answers that was asked for by its alias."""
    return f"{model}-{SNAPSHOTS[number]}"


def _setting(api: str, system: str, tools: tuple[ToolDefinition, ...], random: Random) -> Setting:
    model = random.choice(MODELS[api][:2])
    parameters: dict[str, object] = {"limit": random.choice([1024, 2048])}
    if random.random() < 0.7:
        parameters["temperature"] = random.choice([0, 0.2, 0.7])
    return Setting(model=model, snapshot=snapshot_of(model), system=system, tools=tools, parameters=parameters)


def prompt_of(domain: Domain, random: Random) -> str:
    """A system prompt; some carry the time or the id of a session, drawn anew for every run or every call."""
    first, *rest = domain.prompt
    chosen = [first, *random.sample(rest, k=random.randint(3, len(rest)))]
    if random.random() < 0.4:
        chosen.append(random.choice(["The time is <<now>>.", "Today is <<today>>.", "It is now <<clock>>."]))
    if random.random() < 0.3:
        chosen.append("Session <<session>>.")
    return random.choice([" ", "\n", "\n\n"]).join(chosen)


def a_use(tool: Tool, random: Random) -> Use:
    marked = random.random() < 0.35
    return Use(tool=tool.name, arguments=tool.arguments(random), result=tool.result(random, marked=marked))


def tool_turn(domain: Domain, random: Random, *, parallel: int = 1, without: str = "") -> Turn:
    tools = random.sample([tool for tool in domain.tools if tool.name != without], k=parallel)
    text = random.choice(domain.leads) if random.random() < 0.8 else ""
    if text and random.random() < 0.15:
        text += " My reference is <<request>>."
    return Turn(text=text, uses=tuple(a_use(tool, random) for tool in tools))


def last_turn(domain: Domain, random: Random) -> Turn:
    return Turn(text=random.choice(domain.ends))


def _task(domain: Domain, random: Random) -> str:
    task = random.choice(domain.tasks)
    if random.random() < 0.25:
        return f"[ticket <<ticket>>, opened <<fetched>>] {task}"
    return task


def _tool_agent(
    api: str,
    random: Random,
    *,
    name: str = "main",
    turns: tuple[int, int] = (4, 9),
    parallel: int = 1,
    streamed: bool = False,
    held: bool = False,
) -> Talk:
    domain = random.choice(DOMAINS)
    count = random.randint(*turns)
    said = [
        tool_turn(domain, random, parallel=random.randint(1, parallel) if number % 2 else parallel)
        for number in range(count - 1)
    ]
    definitions = tuple(tool.definition() for tool in domain.tools)
    return Talk(
        name=name,
        family=name,
        api=api,
        domain=domain,
        asks=_task(domain, random),
        turns=(*said, last_turn(domain, random)),
        setting=_setting(api, prompt_of(domain, random), definitions, random),
        streamed=streamed,
        held=held,
    )


def anthropic_stream(random: Random) -> Scenario:
    return _alone("anthropic stream", _tool_agent("anthropic", random, streamed=True))


def parallel_tools(random: Random) -> Scenario:
    return _alone("chat, parallel tools", _tool_agent("chat", random, turns=(4, 8), parallel=3))


def responses(random: Random) -> Scenario:
    return _alone("responses", _tool_agent("responses", random, turns=(4, 8), parallel=2))


def held_responses(random: Random) -> Scenario:
    return _alone("responses, held", _tool_agent("responses", random, turns=(4, 7), held=True, streamed=True))


def gemini(random: Random) -> Scenario:
    streamed = random.random() < 0.5
    return _alone("gemini", _tool_agent("gemini", random, turns=(4, 8), parallel=2, streamed=streamed))


def _alone(shape: str, talk: Talk) -> Scenario:
    return Scenario(shape=shape, stages=((talk,),))


def person(random: Random) -> Scenario:
    """A chat with somebody who has more to ask."""
    api = random.choice(["anthropic", "chat", "gemini"])
    talk = _tool_agent(api, random, turns=(3, 4), streamed=random.random() < 0.5)
    domain = talk.domain
    turns, follow_ups = list(talk.turns), {}
    for question in random.sample(domain.follow_ups, k=random.randint(1, 3)):
        follow_ups[len(turns) - 1] = question
        if random.random() < 0.6:
            turns.append(tool_turn(domain, random))
        turns.append(last_turn(domain, random))
    return _alone("person", replace(talk, turns=tuple(turns), follow_ups=follow_ups))


DELEGATE = ToolDefinition(
    "delegate",
    "Hands a task to a specialist and gives back what they found.",
    {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]},
)


def sub_agent(random: Random) -> Scenario:
    """An agent that hands one task to a sub-agent with a prompt and tools of its own."""
    api = random.choice(["anthropic", "chat"])
    outer = _tool_agent(api, random, turns=(3, 5))
    inner = _tool_agent(api, random, name="specialist", turns=(2, 4))
    task = f"Please find out for me and report back: {random.choice(inner.domain.tasks)}"
    inner = replace(inner, asks=task, setting=_with_system(inner.setting, _AS_SPECIALIST))
    at = random.randrange(len(outer.turns) - 1)
    handing = Turn(
        text="That is for a specialist.", uses=(Use(tool=DELEGATE.name, arguments={"task": task}, helper=inner),)
    )
    setting = replace(
        outer.setting,
        system=outer.setting.system + " Hand what you cannot do yourself to a specialist.",
        tools=(*outer.setting.tools, DELEGATE),
    )
    turns = (*outer.turns[:at], handing, *outer.turns[at:])
    return _alone("sub-agent", replace(outer, turns=turns, setting=setting))


_AS_SPECIALIST = "You are a specialist who answers one question of a colleague. "


def fan_out(random: Random) -> Scenario:
    """The same question about many things at once, and one call that sums up."""
    api = random.choice(["chat", "gemini", "anthropic"])
    domain = random.choice(DOMAINS)
    system = "You sort incoming messages. " + " ".join(domain.prompt[1:4])
    if random.random() < 0.5:
        system += " It is now <<clock>>, and this is batch <<session>>."
    setting = _setting(api, system, (), random)
    things = [*domain.tasks, *domain.follow_ups]
    items = [
        Talk(
            name=f"item {number}",
            family="item",
            api=api,
            domain=domain,
            asks=f"Say in one sentence what this person needs.\n\nMessage {number}: {text}",
            turns=(Turn(text=f"{text.split('?')[0].split('.')[0]}: {random.choice(domain.ends)}"),),
            setting=setting,
        )
        for number, text in enumerate(random.sample(things, k=random.randint(3, 7)), 1)
    ]
    quoted = "\n".join(f"{number}. <<answer of {talk.name}>>" for number, talk in enumerate(items, 1))
    summary = Talk(
        name="summary",
        family="summary",
        api=api,
        domain=domain,
        asks=f"Sum these up in three lines:\n{quoted}",
        turns=(last_turn(domain, random),),
        setting=_with_system(setting, "You write summaries for a team. "),
    )
    return Scenario(shape="fan-out", stages=(tuple(items), (summary,)))


def pipeline(random: Random) -> Scenario:
    """Plan, research, write: each with a prompt of its own, each given what the one before said."""
    api = random.choice(["responses", "anthropic", "gemini"])
    domain = random.choice(DOMAINS)
    task = _task(domain, random)
    plan = _tool_agent(api, random, name="plan", turns=(1, 1))
    research = _tool_agent(api, random, name="research", turns=(2, 4))
    write = _tool_agent(api, random, name="write", turns=(1, 2))
    return Scenario(
        shape="pipeline",
        stages=(
            (
                replace(
                    plan,
                    asks=f"Make a plan of three steps for this request: {task}",
                    setting=_with_system(plan.setting, "You make plans and carry none of them out. "),
                ),
            ),
            (
                replace(
                    research,
                    asks="Gather what is needed for this plan.\n\nPlan: <<answer of plan>>",
                    setting=_with_system(research.setting, "You gather facts with the tools you have. "),
                ),
            ),
            (
                replace(
                    write,
                    asks=f"Write the reply to: {task}\n\nWhat we know: <<answer of research>>",
                    setting=_with_system(write.setting, "You write replies to customers. "),
                ),
            ),
        ),
    )


def _with_system(setting: Setting, words: str) -> Setting:
    return replace(setting, system=words + setting.system)


SHAPES: tuple[Callable[[Random], Scenario], ...] = (
    anthropic_stream,
    parallel_tools,
    responses,
    held_responses,
    gemini,
    person,
    sub_agent,
    fan_out,
    pipeline,
)
