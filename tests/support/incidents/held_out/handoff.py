"""A help line: triage hands a customer over to billing, tech or refunds, each with a prompt and a model of its own."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from support.incidents.case import ScriptedAgent, incident
from support.incidents.intent import CallIntent, Intent, View, call, do, say
from support.incidents.shared import (
    MODELS,
    described,
    edited,
    hexes,
    is_newer,
    is_weak,
    newer,
    result,
    role,
    stamp,
    tool,
    weaker,
    with_parameter,
    without_argument,
    without_line,
)
from support.incidents.stage import AgentRole, Outage, Run, Setup
from support.incidents.wording import states

_DESKS = ("billing", "tech", "refunds")
_LOOKUP = tool("lookup_account", "Look up the account of the caller.", account="The account's number")
_TRIAGE_TOOLS = (
    _LOOKUP,
    tool("transfer_to_billing", "For invoices, payments and double charges.", summary="For the colleague"),
    tool("transfer_to_tech", "For errors and devices that do not work.", summary="For the colleague"),
    tool("transfer_to_refunds", "For products that are sent back.", summary="For the colleague"),
)
_BILLING_TOOLS = (
    _LOOKUP,
    tool("get_invoices", "List the invoices of an account.", account="The account's number"),
    tool("get_payments", "List the payments of an account.", account="The account's number"),
    tool("void_charge", "Take a charge back.", payment="The payment", channel="card or bank", note="For the books"),
    tool("ask_supervisor", "Let a supervisor decide.", payment="The payment", note="For the supervisor"),
    tool("write_log", "Write down what was done.", account="The account's number", text="What was done"),
)
_TECH_TOOLS = (
    _LOOKUP,
    tool("get_device", "Look up the device of an account.", account="The account's number"),
    tool("search_kb", "Search the knowledge base.", code="The error's code", query="What to look for"),
    tool("run_diagnostics", "Test the device from afar.", device="The device"),
    tool("open_case", "Send a technician.", device="The device", severity="low or high", text="What is wrong"),
    tool("write_log", "Write down what was done.", account="The account's number", text="What was done"),
)
_READ_ONLY = frozenset({"lookup_account", "get_invoices", "get_payments", "get_device", "search_kb"})


def _setup(random: Random) -> Setup:
    api = random.choice(["responses", "chat"])
    triage = (
        "You answer the help line and hand callers over to the right desk.\n"
        "Look up the account first.\n"
        "Whoever was charged twice goes to billing.\n"
        "Whoever has an error on a device goes to tech.\n"
        "Whoever wants to send something back goes to refunds.\n"
        "Do not solve anything yourself."
    )
    billing = (
        "You are the billing desk.\n"
        "Look at invoices and payments together.\n"
        "Take double charges of up to $100 back yourself; ask a supervisor above that.\n"
        "Business customers are always sent to a supervisor.\n"
        "Use the card unless the caller wants the bank.\n"
        "Write down what you did, then tell the caller."
    )
    tech = (
        "You are the tech desk.\n"
        "Look up the device and the error's code.\n"
        "Test the device before you send anybody.\n"
        "A technician is sent with severity high if the test fails, else low.\n"
        "Write down what you did, then tell the caller."
    )
    account = f"{random.randint(100, 999)}-{random.randint(10, 99)}"
    amount = random.choice([19.0, 29.5, 39.0, 49.0, 59.9])
    parameters = {"limit": 1024, "temperature": 0.2}
    return Setup(
        roles={
            "triage": role(api, triage, _TRIAGE_TOOLS, parameters={"temperature": 0.2}),
            "billing": role(api, billing, _BILLING_TOOLS, parameters=parameters),
            "tech": role(api, tech, _TECH_TOOLS, parameters=parameters),
            "refunds": role(api, "You are the desk for refunds. Tell the caller how to send things back."),
            "scribe": role(api, "You sum up calls in one sentence.", weak=True),
        },
        question=f"Hello, my account is {account}. I was charged twice this month, please sort it out.",
        facts={
            "account": account,
            "plan": "private",
            "amount": amount,
            "payments": 2,
            "device": f"router R{random.randint(2, 9)}0",
            "code": f"E{random.randint(20, 79)}",
            "test": "passed",
            "article": "restart the device twice",
            "whole": random.random() < 0.5,
        },
        skips=frozenset() if random.random() < 0.3 else frozenset({"scribe"}),
    )


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────


def _tool(setup: Setup, meant: CallIntent, random: Random) -> str:
    facts = setup.facts
    match meant.tool:
        case "lookup_account":
            return result(random, account=facts["account"], plan=facts["plan"], since="2021-04-02", seats=1)
        case "get_invoices":
            rows = [{"invoice": "INV-771", "amount": facts["amount"], "month": "February"}]
            return result(random, invoices=rows)
        case "get_payments":
            rows = [
                {"payment": f"PAY-{at}", "invoice": "INV-771", "amount": facts["amount"]}
                for at in range(1, facts["payments"] + 1)
            ]
            return result(random, count=len(rows), payments=rows)
        case "get_device":
            return result(random, device=facts["device"], firmware="4.2.1", uptime_s=random.randint(10**4, 10**6))
        case "search_kb":
            hit = {"code": facts["code"], "text": f"On {facts['code']}: {facts['article']}.", "score": random.random()}
            return result(random, hits=[hit] if facts["article"] else [])
        case "run_diagnostics":
            if facts["test"] == "passed":
                return f"self test passed at {stamp(random)} ({random.randint(200, 900)} ms, 12 checks)"
            return f"self test FAILED at {stamp(random)}: memory error in bank 3"
    return result(random, ok=True, id=hexes(random, 6))


def _play(run: Run) -> None:
    setup = run.setup
    triage = run.talk("triage", _triage_mind)
    triage.read_only = _READ_ONLY
    for remark in setup.follow_ups:
        triage.user(remark)
        triage.ask()
    triage.user(setup.question)
    desk, summary = "", ""
    while not desk:
        said = triage.ask()
        if not said.calls:
            return
        for _, meant, arguments in said.calls:
            if meant.tool.startswith("transfer_to_"):
                desk, summary = meant.tool.removeprefix("transfer_to_"), str(arguments["summary"])
        triage.answer_calls(said, lambda meant, random: _tool(setup, meant, random))
    clock = triage.clock
    if "scribe" not in setup.skips:
        scribe = run.talk("scribe", _scribe_mind, at=clock)
        scribe.user(f"Sum up for {desk}: {setup.question}")
        scribe.ask()
        clock = scribe.clock
    specialist = run.talk(desk, _MINDS[desk], at=clock)
    specialist.read_only = _READ_ONLY
    if setup.facts["whole"]:
        # With the whole call so far, as kits for agents do it.
        specialist.entries = list(triage.entries)
        specialist.user("(You have been handed this call.)")
    else:
        told = "\n".join((*setup.follow_ups, setup.question))
        specialist.user(f"Handed over by triage: {summary}\n\nThe caller said: {told}")
    specialist.converse(lambda meant, random: _tool(setup, meant, random), most=20)


# ── triage ───────────────────────────────────────────────────────────────────────────────────────────────────


def _account(view: View) -> str:
    found = re.search(r"\b\d{3}-\d{2}\b", view.asked)
    assert found is not None, "callers name their accounts"
    return found[0]


def _triage_mind(view: View) -> Intent:
    if "account" not in view.asked:
        return say(
            "noted: the bank",
            states(
                "[Noted|Understood]: [to your bank|money goes to your bank|your bank, not a card].",
                "[All right|Thanks], [I'll pass on|I will remember] that it [goes to|is for] your bank.",
            ),
            states("[What can I do for you?|How can I help?|What is it about?]", last=True),
        )
    if not view.did("lookup_account"):
        beside = (
            "[One moment|Just a second], [I'm looking up|let me look up] your account.",
            "[Hello|Hi]! [Checking|Let me see].",
        )
        return do(call("lookup_account", account=_account(view)), beside=beside)
    desk = _desk_for(view)
    what = "a double charge" if "charged twice" in view.asked else "an error" if "error" in view.asked else "a question"
    summary = (
        f"[Caller|Customer] [reports|has|complains about] {what}[.|; please help.|, account checked.]",
        f"[It is about|About] {what}. [The account is known.|Account looked up.]",
        f"{what.capitalize()}, [says the caller|by the caller's words]. [Please take over.|Over to you.]",
    )
    words = (
        "[I'll connect you|Let me connect you|Connecting you] [with a colleague|with the right desk].",
        "[A colleague|Somebody] [can help you with that|will take care of it][.|: one moment.]",
        "",
    )
    return do(call(f"transfer_to_{desk}", {"summary": summary}), beside=words)


def _desk_for(view: View) -> str:
    if view.heads("wrong desk"):
        return "tech"
    if "charged twice" in view.asked:
        if is_weak(view.model) or "double charges" not in view.tools["transfer_to_billing"].description:
            return "refunds"
        rule = re.search(r"charged twice goes to (\w+)", view.system)
        return rule[1] if rule is not None else "refunds"
    return "tech" if "error" in view.asked else "refunds"


def _scribe_mind(view: View) -> Intent:
    trouble = "was charged twice" if "charged twice" in view.asked else "has an error on a device"
    return say(
        f"sums up: {trouble}",
        states(
            f"[A caller|The caller|A customer] {trouble} [and needs help|and asks for help|].",
            f"[Somebody called who|There is a customer who] {trouble}.",
            f"[In short|Summary]: the [caller|customer] {trouble}.",
        ),
    )


# ── the desks ────────────────────────────────────────────────────────────────────────────────────────────────

_OPENS = (
    "[Thanks for waiting|Thank you for your patience|Hello again][.|!]",
    "[I have looked at it|I've checked][.|:]",
)
_CLOSES = (
    "[Anything else?|Is there anything else?|Can I do more for you?]",
    "[Goodbye|Have a nice day|Take care][!|.]",
)


def _billing_mind(view: View) -> Intent:
    account = _account(view)
    if not view.did("get_payments"):
        beside = (
            "[Let me see|Looking at] [what was paid|your invoices and payments].",
            "[Checking|I'm checking] the books.",
            "",
        )
        return do(call("get_invoices", account=account), call("get_payments", account=account), beside=beside)
    payments = json.loads(view.result("get_payments"))["payments"]
    if len(payments) < 2:
        return say(
            "only one payment",
            states(
                "[There is|I see|I find] only one payment.",
                "[You were not charged twice|No double charge]: [one payment|a single payment].",
            ),
            states("[So nothing has to be taken back.|So there is nothing to correct.]"),
            opens=_OPENS,
            closes=_CLOSES,
        )
    amount = payments[-1]["amount"]
    if not view.did("void_charge") and not view.did("ask_supervisor"):
        return _settles(view, payments[-1]["payment"], amount)
    return _ends(view, account, f"${amount:.2f}")


def _settles(view: View, payment: str, amount: float) -> Intent:
    limit = re.search(r"up to \$(\d+)", view.system)
    business = '"business"' in view.result("lookup_account") and "Business customers" in view.system
    unsure = is_newer(view.snapshot) or view.parameters.get("temperature", 0) > 0.8 or view.heads("unsure")
    if business or unsure or is_weak(view.model) or (limit is not None and amount > int(limit[1])):
        note = (
            "[Please decide|Your call]: [double charge|charged twice].",
            "[A double charge|Two payments], [please check|may I?]",
        )
        beside = ("[A supervisor has to look at this.|I need to ask.|Let me ask my supervisor.]",)
        return do(call("ask_supervisor", {"note": note}, payment=payment), beside=beside)
    note = (
        "[Charged twice|Double charge][, taken back|; reversed].",
        "[Second payment|Payment made twice] [for the same invoice|] [reversed|taken back].",
    )
    channel = {"channel": "bank" if "my bank" in view.asked else "card"} if view.has("void_charge", "channel") else {}
    acts = (
        "[It was indeed charged twice|I see two payments][, taking one back|: one goes back].",
        "[On it.|Doing it now.]",
        "",
    )
    return do(call("void_charge", {"note": note}, payment=payment, **channel), beside=acts)


def _tech_mind(view: View) -> Intent:
    account = _account(view)
    if not view.did("get_device"):
        code = re.search(r"\bE\d\d\b", view.asked)
        query = (
            "[what does this error mean|meaning of the error]",
            "[error|fault] [help|fix|solution]",
            "[how to fix it|how to get rid of it]",
        )
        calls = call("get_device", account=account), call("search_kb", {"query": query}, code=code[0] if code else "")
        return do(
            *calls, beside=("[Let me see|Looking at] your device [and the error|].", "[One moment.|Checking.]", "")
        )
    device = json.loads(view.result("get_device"))["device"]
    if not view.did("run_diagnostics") and "Test the device" in view.system:
        return do(call("run_diagnostics", device=device), beside=("[I'll test it|A test from here][.| first.]", ""))
    known = "restart" in view.result("search_kb")
    failed = "FAILED" in view.result("run_diagnostics")
    if not view.did("open_case") and (failed or not known):
        text = (
            "[Device|It] [fails|has a fault], [please go there|technician needed].",
            "[On site visit|A visit] [is needed|please].",
        )
        severity = "high" if failed else "low"
        beside = ("[I'm sending somebody|A technician is needed][.|, one moment.]", "")
        return do(call("open_case", {"text": text}, device=device, severity=severity), beside=beside)
    return _ends(view, account, device)


def _ends(view: View, account: str, about: str) -> Intent:
    """Write it down, then tell."""
    done, text = _outcome(view)
    if not view.did("write_log"):
        words = (
            f"[Done|Settled]: {text}.",
            f"{text.capitalize()}[, caller told|, closed].",
            f"[Call closed|Finished], {text}.",
        )
        return do(call("write_log", {"text": words}, account=account), beside=("[For the file.|Writing it down.|]",))
    return say(
        f"{done} ({about})",
        states(
            f"[All settled|Done|It is done]: {text} ({about}).",
            f"[I can tell you that|As of now,] {text}: {about}.",
            f"[Regarding|As to] {about}: {text}.",
        ),
        states(f"[Your account|The account] {account} [is up to date|has a note about it].", optional=True),
        states("[Thanks for telling us.|Sorry for the trouble.|We are sorry about that.]", optional=True),
        opens=_OPENS,
        closes=_CLOSES,
    )


def _outcome(view: View) -> tuple[str, str]:
    if view.did("ask_supervisor"):
        return "supervisor", "a supervisor will decide"
    if view.did("void_charge"):
        ((meant, _),) = view.results("void_charge")[-1:]
        where = meant.decisive.get("channel", "card")
        return f"voided to {where}", f"one charge was taken back to your {where}"
    if view.did("open_case"):
        ((meant, _),) = view.results("open_case")[-1:]
        severity = meant.decisive["severity"]
        return f"case {severity}", f"a technician comes with severity {severity}"
    return "advice", "please restart the device twice"


def _refunds_mind(view: View) -> Intent:
    return say(
        "sends a label",
        states(
            "[You get|We send you] a label [for the parcel|to send it back].",
            "[A label is on its way|Look for a label in your mail].",
        ),
        states("[Please pack it well.|Use the box it came in.]", optional=True),
        opens=_OPENS,
        closes=_CLOSES,
    )


_MINDS = {"billing": _billing_mind, "tech": _tech_mind, "refunds": _refunds_mind}


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────


def _error_call(setup: Setup) -> Setup:
    """The caller has another trouble."""
    facts = setup.facts
    question = f"Hello, my account is {facts['account']}. My {facts['device']} shows the error {facts['code']}."
    return replace(setup, question=question)


def _wish(setup: Setup) -> Setup:
    told = "One thing first: whatever you pay me goes to my bank, please, I have no card any more."
    return replace(setup, follow_ups=(told,)).with_facts(whole=True)


def _whole(setup: Setup) -> Setup:
    return setup.with_facts(whole=True)


def _on_chat(setup: Setup) -> Setup:
    changed = setup
    for name, one in setup.roles.items():
        model = MODELS["chat"][is_weak(one.model)]
        changed = changed.with_role(name, api="chat", model=model, snapshot=f"{model}-20250929")
    return changed


def _outage(setup: Setup, _: Random) -> Setup:
    fallback = weaker(setup, "billing").roles["billing"].model
    return replace(setup, outages={("billing", 1): Outage(status=429)}, fallback=fallback)


def _role_words(name: str, read: Callable[[AgentRole], str]) -> Callable[[Setup, Setup], list[str]]:
    return lambda a, b: [read(a.roles[name]), read(b.roles[name])]


AGENT = ScriptedAgent(
    name="handoff",
    setup=_setup,
    play=_play,
    incidents=(
        incident(
            "desk-rule",
            "system",
            "SYSTEM",
            lambda s, _: edited(s, "triage", "twice goes to billing", "twice goes to refunds"),
            lambda a, b: ["charged twice", "billing", "refunds"],
        ),
        incident(
            "limit",
            "system",
            "SYSTEM",
            lambda s, _: edited(s, "billing", "up to $100", "up to $10"),
            lambda a, b: ["double charges", "100", "10"],
        ),
        incident(
            "test-rule",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "tech", "Test the device"),
            lambda a, b: ["before you send anybody"],
            prepare=_error_call,
        ),
        incident(
            "triage-model",
            "model",
            "MODEL",
            lambda s, _: weaker(s, "triage"),
            _role_words("triage", lambda one: one.model),
        ),
        incident(
            "billing-model",
            "model",
            "MODEL",
            lambda s, _: weaker(s, "billing"),
            _role_words("billing", lambda one: one.model),
        ),
        incident(
            "snapshot",
            "snapshot",
            "SNAPSHOT",
            lambda s, _: newer(s, "billing"),
            _role_words("billing", lambda one: one.snapshot),
        ),
        incident(
            "description",
            "tools",
            "TOOLS",
            lambda s, _: described(
                s, "triage", "transfer_to_billing", "invoices, payments and double charges", "invoices"
            ),
            lambda a, b: ["payments and double charges"],
        ),
        incident(
            "lost-channel",
            "tools",
            "TOOLS",
            lambda s, _: without_argument(s, "billing", "void_charge", "channel"),
            lambda a, b: ["card or bank"],
        ),
        incident(
            "temperature",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "billing", temperature=1.0),
            lambda a, b: ["temperature"],
        ),
        incident(
            "max-tokens",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "billing", limit=6),
            lambda a, b: ["max_completion_tokens", "1024"],
            prepare=_on_chat,
        ),
        incident(
            "other-trouble",
            "input",
            "INPUT",
            lambda s, _: _error_call(s),
            lambda a, b: ["charged twice", b.facts["code"]],
        ),
        incident(
            "one-payment", "tool result", "TOOL_OUTPUT", lambda s, _: s.with_facts(payments=1), lambda a, b: ["PAY-2"]
        ),
        incident(
            "no-article",
            "tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(article=""),
            lambda a, b: ["restart the device twice"],
            prepare=_error_call,
        ),
        incident(
            "failed-test",
            "tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(test="failed"),
            lambda a, b: ["memory error in bank 3"],
            prepare=_error_call,
        ),
        incident(
            "business",
            "far tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(plan="business"),
            lambda a, b: ["private", "business"],
            prepare=_whole,
        ),
        incident(
            "forgets",
            "history",
            "HISTORY",
            lambda s, _: replace(s, forgets=frozenset({"One thing first"})),
            lambda a, b: ["goes to my bank"],
            prepare=_wish,
        ),
        incident(
            "fallback", "fallback", "ERROR MODEL", _outage, lambda a, b: [b.fallback or "", ("429", "rate limit")]
        ),
        incident(
            "wrong-desk",
            "handoff",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({"wrong desk"})),
            lambda a, b: ["transfer_to_billing", "transfer_to_tech"],
        ),
        incident(
            "coin",
            "sampling",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({"unsure"})),
            lambda a, b: ["void_charge", "ask_supervisor"],
        ),
        incident(
            "no-scribe",
            "path",
            "PATH",
            lambda s, _: replace(s, skips=frozenset({"scribe"})),
            lambda a, b: [("Sum up", "sum up", "caller", "customer", "Somebody")],
            prepare=lambda s: replace(s, skips=frozenset()),
        ),
    ),
)
