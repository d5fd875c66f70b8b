"""An assistant that answers questions from a handbook: it embeds, searches over plain HTTP, ranks and answers."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from rewind.model.http import HttpRequest
from support.incidents.case import ScriptedAgent, incident
from support.incidents.intent import Intent, View, say
from support.incidents.shared import edited, hexes, is_newer, is_weak, newer, role, weaker, with_parameter, without_line
from support.incidents.stage import Outage, Run, Setup
from support.incidents.wording import states
from support.planted_wire import document, post

_TOPICS: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("notice", "How long is the notice period?", "The notice period is {n} weeks.", (4, 6, 8)),
    ("leave", "How many days of leave do I have?", "Everybody has {n} days of leave a year.", (26, 28, 30)),
    ("remote", "How many days may I work from home?", "Working from home is fine on {n} days a month.", (8, 10, 12)),
    ("meals", "What is the allowance for meals on trips?", "The allowance for meals is ${n} a day.", (35, 42, 48)),
    ("probation", "How long is the probation?", "The probation lasts {n} months.", (3, 5, 6)),
    ("training", "What can I spend on training?", "Training is paid up to ${n} a year.", (900, 1200, 1500)),
)
_NOT_SAID = "Nothing is written about this."


def _setup(random: Random) -> Setup:
    first = random.choice([topic for topic in _TOPICS if topic[1].startswith("How long")])
    topics = [first, *random.sample([topic for topic in _TOPICS if topic is not first], k=3)]
    answer_system = (
        "You answer questions of the staff from the passages of the handbook.\n"
        "Where passages disagree, the newest one holds.\n"
        "If the passages do not tell, say that you do not know.\n"
        "Name the chapter that you rely on.\n"
        "One or two sentences, friendly."
    )
    ranker_system = (
        "You rank passages. Answer with JSON: the numbers of the passages that help, best first.\n"
        "Keep old versions, they may matter.\n"
        "At most three."
    )
    api, ranker_api = random.choice([("gemini", "gemini"), ("responses", "chat"), ("gemini", "chat")])
    return Setup(
        roles={
            "assistant": role(api, answer_system, parameters={"limit": 800, "temperature": 0.2}),
            "ranker": role(ranker_api, ranker_system, parameters={"temperature": 0}),
        },
        question=topics[0][1],
        facts={
            "topics": [topic[0] for topic in topics],
            "questions": [topic[1] for topic in topics],
            "values": {topic[0]: random.choice(topic[3]) for topic in topics},
            "embeds": random.choice(["", "text-embedding-3-small", "text-embedding-3-small"]),
            "found": {},
            "ranks": True,
        },
        skips=frozenset() if random.random() < 0.6 else frozenset({"ranking 0"}),
    )


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────


def _passages(setup: Setup, topic: str, random: Random) -> list[dict[str, object]]:
    facts = setup.facts
    if topic in facts["found"] and not isinstance(facts["found"][topic], list):
        return []
    _, _, sentence, _ = next(one for one in _TOPICS if one[0] == topic)
    value = facts["values"][topic]
    older = [f"[2019] {sentence.format(n=value + 1)}"] if topic != facts["topics"][0] else []
    texts = facts["found"].get(topic) or [
        f"[2025] {sentence.format(n=value)}",
        *older,
        "[2024] Questions about contracts go to the people team.",
        "[2023] The handbook is read once a year by everybody.",
    ]
    return [
        {"id": f"{topic}-{at}", "text": text, "score": round(0.95 - 0.1 * at - random.uniform(0, 0.05), 4)}
        for at, text in enumerate(texts)
    ]


def _found(run: Run, number: int, topic: str, question: str, at: float) -> tuple[list[str], float]:
    """The texts of the passages, after an embedding where there is one."""
    setup = run.setup
    random = run.drawing(f"search:{number}", from_level=2)
    style, query = run.style, {"q": question, "top_k": 4}
    if model := setup.facts["embeds"]:
        vector = [round(Random(f"{model}:{question}:{at}").uniform(-1, 1), 6) for at in range(8)]
        asked = post("api.openai.com", "/v1/embeddings", {"model": model, "input": question}, style)
        data = [{"object": "embedding", "index": 0, "embedding": vector}]
        usage = {"prompt_tokens": 9, "total_tokens": 9}
        body = document({"object": "list", "data": data, "model": model, "usage": usage})
        at = run.fetch(f"embedding-{number}", asked, body, at=at, key=f"embedded by {model}")
        query = {"vector": vector, "top_k": 4}
    request = _search_request(run, query)
    if setup.facts["found"].get(topic) == "rebuilding":
        answer: dict[str, object] = {"error": "the index is being rebuilt, results are incomplete", "matches": []}
    else:
        answer = {"matches": _passages(setup, topic, random)}
    if setup.facts["embeds"] == "text-embedding-ada-002":
        answer = {"matches": list(reversed(_passages(setup, topic, random)))[:3]}
    texts = [str(one["text"]) for one in answer["matches"]]  # type: ignore[attr-defined]
    body = document({**answer, "took_ms": random.randint(3, 90), "request_id": hexes(random, 12)})
    at = run.fetch(f"search-{number}", request, body, at=at, key=json.dumps(texts))
    return ([str(answer["error"])] if "error" in answer else texts), at


def _search_request(run: Run, query: dict[str, object]) -> HttpRequest:
    return post("vectors.example", "/collections/handbook/query", query, run.style)


def _play(run: Run) -> None:
    setup = run.setup
    assistant = run.talk("assistant", _assistant_mind)
    for number, (topic, question) in enumerate(zip(setup.facts["topics"], setup.facts["questions"], strict=True)):
        texts, clock = _found(run, number, topic, question, assistant.clock)
        if f"ranking {number}" not in setup.skips and texts:
            ranker = run.talk(f"ranker-{number}", _ranker_mind, role="ranker", at=clock)
            listed = "\n".join(f"{at}. {text}" for at, text in enumerate(texts, 1))
            ranker.user(f"Question: {question}\n\nPassages:\n{listed}")
            chosen = json.loads(ranker.ask().text)["keep"]
            texts, clock = [texts[at - 1] for at in chosen], ranker.clock
        assistant.clock = clock
        passages = "\n".join(texts) or "(nothing found)"
        assistant.user(f"Passages:\n{passages}\n\nQuestion: {question}")
        assistant.ask()
        assistant.clock += 4
    for remark in setup.follow_ups:
        assistant.user(remark)
        assistant.ask()


# ── the models ───────────────────────────────────────────────────────────────────────────────────────────────


def _ranker_mind(view: View) -> Intent:
    passages = re.findall(r"^(\d+)\. \[(\d{4})\] (.*)$", view.asked, re.MULTILINE)
    helpful = [(number, year) for number, year, text in passages if re.search(r"\d", text)]
    if "Keep old versions" not in view.system:
        helpful = [one for one in helpful if one[1] == max(year for _, year in helpful)] if helpful else []
    if is_weak(view.model):
        helpful = helpful[-1:]
    keep = [int(number) for number, _ in helpful[:3]] or [int(passages[0][0])] if passages else [1]
    return say(f"keeps {keep}", exact=json.dumps({"keep": keep}))


def _assistant_mind(view: View) -> Intent:
    last = view.asked.rpartition("Passages:")[2]
    if "trainees" in last:
        return _trainees(view)
    question = last.rpartition("Question: ")[2].strip()
    lines = re.findall(r"^\[(\d{4})\] (.*)$", last, re.MULTILINE)
    told = [(year, text) for year, text in lines if re.search(r"\d", text)]
    if "being rebuilt" in last:
        return _does_not_know("the index is being rebuilt")
    if not told and "say that you do not know" in view.system:
        return _does_not_know("the handbook does not tell")
    if not told:
        return _says("As a rule, it is 14.", "", "guess")
    second = question.startswith(("How many", "What")) and (
        view.heads("older") or is_newer(view.snapshot) or view.parameters.get("temperature", 0) > 0.8
    )
    newest = "the newest one holds" in view.system and not is_weak(view.model) and not second
    year, text = max(told) if newest else min(told)
    return _says(text, year, text)


def _says(text: str, year: str, means: str) -> Intent:
    plain = text.rstrip(".")
    low = plain[:1].lower() + plain[1:]
    ways = (
        f"[The handbook says|According to the handbook|It is written] [that|:] {low}.",
        f"{plain}[.|, says the handbook.|, as the handbook has it.]",
        f"[Good question|Sure][:|!] {plain}.",
        f"[You will find|One reads] in the handbook that {low}.",
    )
    source = (
        f"[That is from|It stands in] the [edition|version] of {year}.",
        f"([Source|Edition]: {year})",
        f"[This is what|That is how] the {year} [edition|text] has it.",
    )
    return say(
        f"answers {means} ({year})",
        states(*ways),
        *([states(*source)] if year else []),
        closes=("[Anything else?|Is there more that you want to know?]", "[Hope that helps|Glad to help][.|!]"),
    )


def _does_not_know(why: str) -> Intent:
    return say(
        f"does not know: {why}",
        states(
            "I [do not know|cannot tell you] [that|]",
            "[there is no answer to that|that cannot be answered] [at the moment|]",
            reason=[why, f"[it seems that|as it looks,] {why}"],
        ),
        states("[Please ask|You may want to ask] the people team.", optional=True),
    )


def _trainees(view: View) -> Intent:
    """A question that can only be understood with the first one."""
    first = view.asked.partition("Question: ")[0]
    told = [
        (year, text) for year, text in re.findall(r"^\[(\d{4})\] (.*)$", first, re.MULTILINE) if re.search(r"\d", text)
    ]
    rule = max(told)[1].rstrip(".") if told else "nothing is written"
    return say(
        f"the same for trainees: {rule}",
        states(
            f"[The same holds|That is the same|It is no different] for trainees: {rule}.",
            f"[Yes|Indeed], [trainees too|for trainees as well]: {rule}.",
        ),
        states("[There is no other rule|Nothing else is written] for them.", optional=True),
    )


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────


def _topic(setup: Setup) -> str:
    """One in the middle that is asked by "How many" or "What"."""
    for topic, question in list(zip(setup.facts["topics"], setup.facts["questions"], strict=True))[2:]:
        if question.startswith(("How many", "What")):
            return str(topic)
    return str(setup.facts["topics"][2])


def _start(setup: Setup, topic: str) -> str:
    """The sentence of the handbook, up to its number."""
    return next(one[2] for one in _TOPICS if one[0] == topic).partition("{n}")[0].rstrip(" $")


def _other_words(a: Setup, b: Setup) -> list[tuple[str, ...]]:
    return [(setup.facts["questions"][2], _start(setup, setup.facts["topics"][2])) for setup in (a, b)]


def _unknown(setup: Setup) -> Setup:
    return setup.with_facts(found={_topic(setup): [f"[2024] {_NOT_SAID}", "[2023] Ask the people team."]})


def _stale(setup: Setup, _: Random) -> Setup:
    topic = _topic(setup)
    values = {**setup.facts["values"], topic: setup.facts["values"][topic] + 9}
    return setup.with_facts(values=values)


def _found_is(value: object) -> Callable[[Setup, Random], Setup]:
    return lambda setup, _: setup.with_facts(found={_topic(setup): value})


def _embedding(model: str) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_facts(embeds=model)


def _other_question(setup: Setup, _: Random) -> Setup:
    asked = {topic: question for topic, question, _, _ in _TOPICS}
    free = next(topic for topic in asked if topic not in setup.facts["topics"])
    topics, questions = list(setup.facts["topics"]), list(setup.facts["questions"])
    topics[2], questions[2] = free, asked[free]
    return setup.with_facts(topics=topics, questions=questions, values={**setup.facts["values"], free: 17})


def _follow_up(setup: Setup) -> Setup:
    return replace(setup, follow_ups=("Back to my first question: is it the same for trainees?",))


def _forgets(setup: Setup, _: Random) -> Setup:
    return replace(setup, forgets=frozenset({setup.facts["questions"][0]}))


def _outage(setup: Setup, _: Random) -> Setup:
    status = 503 if setup.roles["assistant"].api == "gemini" else 429
    fallback = weaker(setup, "assistant").roles["assistant"].model
    return replace(setup, outages={("assistant", 1): Outage(status=status)}, fallback=fallback)


def _ranked(setup: Setup) -> Setup:
    return replace(setup, skips=frozenset())


def _unranked(setup: Setup) -> Setup:
    return replace(setup, skips=frozenset(f"ranking {number}" for number in range(4)))


def _on_gemini(setup: Setup) -> Setup:
    gemini = role("gemini", "")
    return setup.with_role("assistant", api="gemini", model=gemini.model, snapshot=gemini.snapshot)


AGENT = ScriptedAgent(
    name="rag",
    setup=_setup,
    play=_play,
    incidents=(
        incident(
            "newest-rule",
            "system",
            "SYSTEM",
            lambda s, _: edited(s, "assistant", "the newest one holds", "the oldest one holds"),
            lambda a, b: ["newest", "oldest"],
        ),
        incident(
            "unknown-rule",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "assistant", "do not know"),
            lambda a, b: ["say that you do not know"],
            prepare=_unknown,
        ),
        incident(
            "ranker-rule",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "ranker", "Keep old"),
            lambda a, b: ["Keep old versions"],
            prepare=_ranked,
        ),
        incident(
            "weak-model",
            "model",
            "MODEL",
            lambda s, _: weaker(s, "assistant"),
            lambda a, b: [a.roles["assistant"].model, b.roles["assistant"].model],
        ),
        incident(
            "ranker-model",
            "model",
            "MODEL",
            lambda s, _: weaker(s, "ranker"),
            lambda a, b: [a.roles["ranker"].model, b.roles["ranker"].model],
            prepare=_ranked,
        ),
        incident(
            "embedding-model",
            "embedding model",
            "MODEL",
            lambda s, _: s.with_facts(embeds="text-embedding-ada-002"),
            lambda a, b: ["text-embedding-3-small", "text-embedding-ada-002"],
            prepare=_embedding("text-embedding-3-small"),
        ),
        incident(
            "snapshot",
            "snapshot",
            "SNAPSHOT",
            lambda s, _: newer(s, "assistant"),
            lambda a, b: [a.roles["assistant"].snapshot, b.roles["assistant"].snapshot],
        ),
        incident(
            "temperature",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "assistant", temperature=1.0),
            lambda a, b: ["temperature"],
        ),
        incident(
            "max-tokens",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "assistant", limit=6),
            lambda a, b: ["maxOutputTokens", "800"],
            prepare=_on_gemini,
        ),
        incident("other-question", "input", "INPUT", _other_question, _other_words),
        incident(
            "stale",
            "retrieval",
            "INPUT TOOL_OUTPUT",
            _stale,
            lambda a, b: [_start(a, _topic(a)), str(a.facts["values"][_topic(a)]), str(b.facts["values"][_topic(b)])],
        ),
        incident(
            "empty",
            "retrieval",
            "INPUT TOOL_OUTPUT",
            _found_is("empty"),
            lambda a, b: [("nothing found", '"matches": []', '"matches":[]')],
            prepare=_unranked,
        ),
        incident(
            "rebuilding",
            "retrieval",
            "INPUT TOOL_OUTPUT",
            _found_is("rebuilding"),
            lambda a, b: ["the index is being rebuilt"],
            prepare=_unranked,
        ),
        incident("window", "history", "HISTORY", _forgets, lambda a, b: [a.facts["questions"][0]], prepare=_follow_up),
        incident(
            "fallback", "fallback", "ERROR MODEL", _outage, lambda a, b: [b.fallback or "", ("429", "503", "verloaded")]
        ),
        incident(
            "coin",
            "sampling",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({"older"})),
            lambda a, b: ["2019", "2025"],
        ),
        incident(
            "no-ranking",
            "path",
            "PATH",
            lambda s, _: replace(s, skips=frozenset({"ranking 1"})),
            lambda a, b: [("keep", "rank")],
            prepare=_ranked,
        ),
    ),
)
