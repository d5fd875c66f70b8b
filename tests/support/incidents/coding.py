"""A coding agent that changes a setting all over a project: it reads, edits, runs tests and commits, in some thirty
calls with forty tools."""

import re
from dataclasses import replace
from random import Random

from support.incidents.case import ScriptedAgent, incident
from support.incidents.intent import CallIntent, Intent, View, call, do, say
from support.incidents.shared import (
    described,
    hexes,
    is_newer,
    is_weak,
    newer,
    role,
    stamp,
    tool,
    weaker,
    with_parameter,
    without_argument,
    without_line,
)
from support.incidents.stage import Outage, Run, Setup
from support.incidents.wording import states

_NAMES = ("orders", "billing", "search", "sync", "mailer", "audit", "exports", "catalog", "webhooks", "profiles")
_TOOLS = (
    tool("list_dir", "List a directory.", path="The directory"),
    tool("read_file", "Read a file. Paths are relative to the root of the project.", path="The file"),
    tool("grep", "Search all files.", pattern="A regular expression"),
    tool(
        "edit_file",
        "Replace a line of a file. Paths are relative to the root of the project.",
        path="The file",
        old="The line as it is",
        new="The line as it shall be",
        why="What the edit is for",
    ),
    tool("run_tests", "Run tests.", target="A test file, or all"),
    tool("run_linter", "Run the linter on the whole project."),
    tool("git_commit", "Commit all changes.", message="The message"),
)
_READ_ONLY = frozenset({"list_dir", "read_file", "grep"})
_GENERATED = "src/gen/client.py"


def _setup(random: Random) -> Setup:
    names = random.sample(_NAMES, k=6)
    project = random.choice(["harbor", "quill", "lantern", "mosaic"])
    rules = [
        "Look around before you change anything.",
        "Run all tests once before your first edit.",
        "Read a file, and its tests, before you edit it.",
        "Run the tests of a module right after you have edited it.",
        "Never edit files below src/gen: a program writes them.",
        "Keep the names of public functions.",
        "Run the linter before you commit.",
        "Do not ask for permission to commit.",
    ]
    listed = "\n".join(f"- {rule}" for rule in rules)
    system = f"You are a careful engineer who works on the project {project}.\n\n{listed}"
    api = random.choice(["chat", "responses"])
    coder = role(api, system, _TOOLS, parameters={"limit": 4096, "temperature": 0.1}, streamed=random.random() < 0.3)
    planner = role(api, "You write short plans for changes of code.", weak=True)
    paths = [f"src/{name}.py" for name in names]
    return Setup(
        roles={"coder": coder, "planner": planner},
        question="Calls to the network still use the function old_fetch, which has no timeout. Please replace it by "
        f"fetch everywhere in {project}, with the timeout that settings.toml names.",
        facts={
            "project": project,
            "paths": [*paths[:3], _GENERATED, *paths[3:]],
            "timeout": random.choice([20, 30, 45]),
            "slow": paths[4],
            "slow_timeout": random.choice([120, 180, 240]),
            "tests": random.randint(38, 160),
            "broken": "",
            "done": "",
            "changelog": True,
        },
        skips=frozenset() if random.random() < 0.25 else frozenset({"plan"}),
    )


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────


def _line(path: str) -> str:
    return f"    answer = old_fetch({_stem(path)}_url)"


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py")


def _tests_of(path: str) -> str:
    return f"tests/test_{_stem(path)}.py"


def _file(setup: Setup, path: str) -> str:
    facts = setup.facts
    stem = _stem(path)
    match path:
        case "README.md":
            return f"# {facts['project']}\n\nA service. See CONTRIBUTING.md.\n"
        case "CONTRIBUTING.md":
            changelog = "- Every change gets a line in CHANGELOG.md, under Unreleased.\n" if facts["changelog"] else ""
            return f"# How we work\n\n- Small commits.\n- Tests for everything.\n{changelog}- Lines of 100 letters.\n"
        case "settings.toml":
            slow = f'\n[slow]\nmodule = "{_stem(facts["slow"])}"\ntimeout_seconds = {facts["slow_timeout"]}\n'
            return f'[network]\nretries = 3\ntimeout_seconds = {facts["timeout"]}\n\n[log]\nlevel = "info"\n{slow}'
        case "CHANGELOG.md":
            return "# Changelog\n\n## Unreleased\n\n## 1.4.0\n\n- Faster start.\n"
    if path.startswith("tests/"):
        return (
            f"from src.{stem.removeprefix('test_')} import load\n\n\ndef test_load():\n    assert load(1) is not None\n"
        )
    line = _line(path)
    if path == facts["done"]:
        line = f"    answer = fetch({stem}_url, timeout=None)  # streams for hours, must not time out"
    head = f'"""The {stem} part."""\n\nfrom net import fetch, old_fetch\n\n\n'
    return f"{head}def load(key):\n{line}\n    return answer.json()\n"


def tool_result(setup: Setup, meant: CallIntent, random: Random, seen: dict[str, int]) -> str:
    facts = setup.facts
    path = str(meant.decisive.get("path", "")).removeprefix("/repo/")
    match meant.tool:
        case "list_dir":
            names = ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "settings.toml", "src", "tests"]
            return "\n".join(f"{stamp(random)[:19]}  {name}" for name in names)
        case "read_file":
            return _file(setup, path)
        case "grep":
            done = seen.get("edited", 0)
            hits = [f"{one}:7:{_line(one)}" for one in facts["paths"]]
            return "\n".join(hits) if not done else "net.py:12:def old_fetch(url):"
        case "edit_file":
            seen["edited"] = 1
            return f"ok: 1 line replaced in {path} (etag {hexes(random)}, {random.randint(300, 900)} bytes)"
        case "run_tests":
            target = str(meant.decisive.get("target", "all"))
            if target == facts["broken"] and not seen.get("mended"):
                seen["mended"] = 1
                return (
                    f"E  ImportError: cannot import name 'fetch' from 'net'\n1 failed in {random.uniform(0.1, 2):.2f}s"
                )
            passed = facts["tests"] if target == "all" else 3 + len(target) % 5
            return f"{'.' * min(passed, 60)}\n{passed} passed in {random.uniform(0.1, 4):.2f}s"
        case "run_linter":
            return f"All checks passed ({random.randint(80, 900)} ms)."
    return f"[main {hexes(random, 7)}] committed, {random.randint(20, 60)} insertions"


def _play(run: Run) -> None:
    setup = run.setup
    clock = 0.0
    if "plan" not in setup.skips:
        planner = run.talk("planner", _planner_mind)
        planner.user(f"Write a plan for this task:\n\n{setup.question}")
        planner.ask()
        clock = planner.clock
    coder = run.talk("coder", coder_mind, at=clock)
    coder.read_only = _READ_ONLY
    coder.user(setup.question)
    seen: dict[str, int] = {}
    coder.converse(lambda meant, random: tool_result(setup, meant, random, seen), most=60)


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────


def _planner_mind(view: View) -> Intent:
    return say(
        "plan",
        states("[First|To begin with], [find|look for] [all callers|every caller|each use] of old_fetch."),
        states("[Replace|Change|Edit] them one [by one|at a time], [running|with] the tests [in between|each time]."),
        states("[Finally|At the end], [commit|lint and commit] [everything|the change]."),
        opens=("[Here is|This is] [the|a] plan.", "[Plan|The plan]:"),
    )


_LOOKS = (
    "[Let me|I'll|I am going to] [have a look at|read|look at] {what} [first|next|now|].",
    "[Next|Now|On to]: {what}.",
    "[Reading|Looking at|Checking] {what} [before I change anything|now|].",
    "",
)


def _looks(what: str) -> tuple[str, ...]:
    return tuple(way.replace("{what}", what) for way in _LOOKS)


def coder_mind(view: View) -> Intent:
    root = "/repo/" if "absolute" in view.tools["read_file"].description else ""
    for step in (_looks_around, _reads_rules, _finds, _tries_first):
        intent = step(view, root)
        if intent is not None:
            return intent
    for path in _callers(view):
        intent = _changes(view, path, root)
        if intent is not None:
            return intent
    return _ends(view, root)


def _looks_around(view: View, root: str) -> Intent | None:
    if view.did("list_dir"):
        return None
    calls = call("list_dir", path=root or "."), call("read_file", path=f"{root}README.md")
    return do(*calls, beside=_looks("[the project|what is there|the layout]"))


def _reads_rules(view: View, root: str) -> Intent | None:
    if view.did("read_file", path=f"{root}settings.toml"):
        return None
    calls = (call("read_file", path=f"{root}{name}") for name in ("CONTRIBUTING.md", "settings.toml"))
    return do(*calls, beside=_looks("[the settings and the rules|how they work here, and the settings]"))


def _finds(view: View, root: str) -> Intent | None:
    if view.did("grep"):
        return None
    return do(call("grep", pattern="old_fetch\\("), beside=_looks("[all callers|every use|who calls it]"))


def _tries_first(view: View, root: str) -> Intent | None:
    if view.did("run_tests") or is_weak(view.model) or "once before" not in view.system:
        return None
    return do(
        _run_tests(view, "all"), beside=("[Do the tests pass as it is?|The tests, as they are now.|A baseline first.]",)
    )


def _run_tests(view: View, target: str) -> CallIntent:
    return call("run_tests", target=target) if view.has("run_tests", "target") else call("run_tests")


def _callers(view: View) -> list[str]:
    found = re.findall(r"^(src/[\w/]+\.py):", view.results("grep")[0][1], re.MULTILINE)
    return [
        path for path in found if not (path.startswith("src/gen") and "Never edit files below src/gen" in view.system)
    ]


def _timeout(view: View, path: str) -> str:
    """As the settings have it, or as the task says."""
    told = re.search(r"timeout of (\d+) seconds", view.asked)
    if told is not None:
        return told[1]
    settings = view.result("read_file", path="settings.toml") or view.result("read_file", path="/repo/settings.toml")
    slow = re.search(r'module = "(\w+)"\ntimeout_seconds = (\d+)', settings)
    if slow is not None and slow[1] == _stem(path):
        return slow[2]
    usual = re.search(r"timeout_seconds = (\d+)", settings)
    return usual[1] if usual is not None else "10"


def _changes(view: View, path: str, root: str) -> Intent | None:
    """Read, edit, test: one module."""
    stem, where = _stem(path), f"{root}{path}"
    if not view.did("read_file", path=where):
        calls = call("read_file", path=where), call("read_file", path=f"{root}{_tests_of(path)}")
        return do(*calls, beside=_looks(f"{stem} [and its tests|, with the tests|]"))
    if "must not time out" in view.result("read_file", path=where):
        return None
    each = "right after you have edited it" in view.system
    if not view.did("edit_file", path=where):
        return _edits(view, path, where)
    failed = "ImportError" in view.result("run_tests", target=_tests_of(path))
    if failed and view.times("edit_file", path=where) == 1:
        why = ("[the import was missing|import what is used]", "[fix the import|mends the import] [of fetch|]")
        edit = call("edit_file", {"why": why}, path=where, old="from net import old_fetch", new="from net import fetch")
        return do(edit, beside=("[The import is wrong|An import fails][.|: I'll mend it.]",))
    wanted = view.times("edit_file", path=where) if view.has("run_tests", "target") else 0
    if each and view.times("run_tests", target=_tests_of(path)) < wanted:
        return do(_run_tests(view, _tests_of(path)), beside=("[Tests|Now the tests|Does it work?|Checking]", ""))
    if each and not view.has("run_tests", "target") and view.times("run_tests") < view.times("edit_file") + 1:
        return do(_run_tests(view, "all"), beside=("[Tests|Now the tests|Does it work?|Checking]", ""))
    return None


def _edits(view: View, path: str, where: str) -> Intent:
    stem, seconds = _stem(path), _timeout(view, path)
    new = f"    answer = fetch({stem}_url, timeout={seconds})"
    wild = view.parameters.get("temperature", 0) > 0.8
    if (view.heads("session") and view.times("edit_file") == 3) or (wild and view.times("edit_file") == 2):
        new = f"    answer = session().get({stem}_url)"
    why = (
        f"[give {stem} a timeout|a timeout for {stem}]",
        f"[{stem} must not hang|calls of {stem} may hang] [without a timeout|for ever]",
        f"[use fetch in {stem}|replace old_fetch in {stem}] [so that it times out|instead of the old function|]",
    )
    beside = (
        f"[Now|Next|So] [I change|I'll change|let me edit] {stem}.",
        f"[Replacing|Changing] the call in {stem}.",
        f"[The fix|The edit] for {stem} [is small|is one line|is simple].",
        "",
    )
    return do(call("edit_file", {"why": why}, path=where, old=_line(path), new=new), beside=beside)


def _ends(view: View, root: str) -> Intent:
    edited = view.times("edit_file")
    changelog = f"{root}CHANGELOG.md"
    if view.times("grep") < 2:
        return do(call("grep", pattern="old_fetch\\("), beside=_looks("[whether any is left|for leftovers]"))
    if "CHANGELOG.md" in view.result("read_file", path=f"{root}CONTRIBUTING.md") and not view.did(
        "edit_file", path=changelog
    ):
        why = ("[a line for the changelog|the changelog]", "[tell users|note the change] [about the timeouts|]")
        new = (
            "- [Calls to|Requests over] the network [have|get] a timeout.",
            "- [No call|No request] hangs [for ever|].",
        )
        return do(
            call("edit_file", {"why": why, "new": new}, path=changelog, old="## Unreleased"),
            beside=_looks("the changelog"),
        )
    if not view.did("run_linter"):
        calls = _run_tests(view, "all"), call("run_linter")
        return do(*calls, beside=("[Everything once more|All tests and the linter|A last check][.| before I commit.]",))
    if is_newer(view.snapshot):
        return say(
            "asks whether to commit",
            states("[Shall I|Should I|Do you want me to] commit [this|the change|it]?", "[May I commit now?]"),
            states(f"[All|The] tests pass, {edited} files are changed.", f"{edited} files [are|were] edited."),
        )
    if not view.did("git_commit"):
        message = (
            "[Replace|Use fetch in place of] old_fetch [everywhere|in all modules]",
            "[net: time out|Give network calls a timeout], [as settings.toml says|by the settings]",
            "[Add timeouts to all calls|No call without a timeout] [(fetch for old_fetch)|]",
        )
        return do(
            call("git_commit", {"message": message}), beside=("[Committing|Now the commit|I'll commit][.| this.]", "")
        )
    return _reports(view, edited)


def _reports(view: View, edited: int) -> Intent:
    seconds = sorted({str(found) for _, text in _edits_made(view) for found in re.findall(r"timeout=(\d+)", text)})
    passed = re.search(r"(\d+) passed", view.result("run_tests"))
    tests = passed[1] if passed is not None else "all"
    return say(
        f"done: {edited} edits, timeouts {', '.join(seconds)}, {tests} tests",
        states(
            "[All callers of|Every call to] old_fetch [now use|were moved to|have been replaced by] fetch.",
            "old_fetch [is no longer used|has no callers any more] [in src|]; fetch [took its place|is used instead].",
        ),
        states(
            f"[The timeouts are|They time out after] {' or '.join(seconds)} seconds.",
            f"[As settings.toml says|By the settings], [it is|calls get] {' or '.join(seconds)} seconds.",
        ),
        states(
            f"[The whole suite|All of the suite] passes: {tests} tests.",
            f"[All|The] {tests} tests [pass|are green], [and the linter is happy|the linter too].",
        ),
        states(f"[I made|There were] {edited} edits [in total|].", optional=True),
        opens=("[Done|All done|Finished][.|!]", "[The change is in|It is committed][.|, here is a summary.]"),
        closes=(
            "[Tell me|Let me know] if [you want it done otherwise|anything should change].",
            "[Anything else?|What is next?]",
        ),
    )


def _edits_made(view: View) -> list[tuple[str, str]]:
    return [("", str(meant.decisive.get("new", ""))) for meant, _ in view.results("edit_file")]


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────


def _on_chat(setup: Setup) -> Setup:
    chat = role("chat", "")
    return setup.with_role("coder", api="chat", model=chat.model, snapshot=chat.snapshot)


def _fewer_hits(setup: Setup, random: Random) -> Setup:
    paths = list(setup.facts["paths"])
    del paths[5]
    return setup.with_facts(paths=paths)


def _outage(setup: Setup, random: Random) -> Setup:
    return replace(
        setup, outages={("coder", 3): Outage(status=429)}, fallback=weaker(setup, "coder").roles["coder"].model
    )


AGENT = ScriptedAgent(
    name="coding",
    setup=_setup,
    play=_play,
    incidents=(
        incident(
            "generated",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "coder", "below src/gen"),
            lambda a, b: ["Never edit files below src/gen"],
        ),
        incident(
            "tests-at-end",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "coder", "right after"),
            lambda a, b: ["Run the tests of a module"],
        ),
        incident(
            "baseline",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "coder", "once before"),
            lambda a, b: ["before your first edit"],
        ),
        incident(
            "weak-model",
            "model",
            "MODEL",
            lambda s, _: weaker(s, "coder"),
            lambda a, b: [a.roles["coder"].model, b.roles["coder"].model],
        ),
        incident(
            "snapshot",
            "snapshot",
            "SNAPSHOT",
            lambda s, _: newer(s, "coder"),
            lambda a, b: [a.roles["coder"].snapshot, b.roles["coder"].snapshot],
        ),
        incident(
            "paths",
            "tools",
            "TOOLS",
            lambda s, _: described(
                s, "coder", "read_file", "relative to the root of the project", "absolute and begin with /repo"
            ),
            lambda a, b: ["relative to the root", "absolute and begin with"],
        ),
        incident(
            "lost-target",
            "tools",
            "TOOLS",
            lambda s, _: without_argument(s, "coder", "run_tests", "target"),
            lambda a, b: ["target"],
        ),
        incident(
            "temperature",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "coder", temperature=1.0),
            lambda a, b: ["temperature"],
        ),
        incident(
            "max-tokens",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "coder", limit=16),
            lambda a, b: ["max_completion_tokens", "16"],
            prepare=_on_chat,
        ),
        incident(
            "other-task",
            "input",
            "INPUT",
            lambda s, _: replace(
                s, question=s.question.replace("the timeout that settings.toml names", "a timeout of 75 seconds")
            ),
            lambda a, b: ["that settings.toml names", "75 seconds"],
        ),
        incident("fewer-hits", "far tool result", "TOOL_OUTPUT", _fewer_hits, lambda a, b: [a.facts["paths"][5]]),
        incident(
            "settings",
            "tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(timeout=s.facts["timeout"] * 10),
            lambda a, b: ["timeout_seconds", str(a.facts["timeout"]), str(b.facts["timeout"])],
        ),
        incident(
            "slow-module",
            "far tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(slow_timeout=s.facts["slow_timeout"] // 10),
            lambda a, b: ["timeout_seconds", str(a.facts["slow_timeout"]), str(b.facts["slow_timeout"])],
        ),
        incident(
            "import-error",
            "tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(broken=_tests_of(s.facts["paths"][2])),
            lambda a, b: ["ImportError: cannot import name"],
        ),
        incident(
            "streams",
            "tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(done=s.facts["paths"][4]),
            lambda a, b: ["must not time out"],
        ),
        incident(
            "no-changelog",
            "far tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(changelog=False),
            lambda a, b: ["Every change gets a line"],
        ),
        incident("window", "history", "HISTORY", lambda s, _: replace(s, window=24), lambda a, b: ["settings.toml"]),
        incident(
            "fallback", "fallback", "ERROR MODEL", _outage, lambda a, b: [b.fallback or "", ("429", "rate limit")]
        ),
        incident(
            "coin",
            "sampling",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({"session"})),
            lambda a, b: ["session().get"],
        ),
        incident(
            "no-plan",
            "path",
            "PATH",
            lambda s, _: replace(s, skips=frozenset({"plan"})),
            lambda a, b: [("plan", "old_fetch")],
            prepare=lambda s: replace(s, skips=frozenset()),
        ),
    ),
)
