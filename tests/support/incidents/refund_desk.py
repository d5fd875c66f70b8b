"""A support agent at a refund desk: it looks things up, reads the policy, decides, pays or declines, and writes."""

import json
import re
from dataclasses import replace
from random import Random
from typing import Any

from support.incidents.case import ScriptedAgent, incident
from support.incidents.intent import CallIntent, Intent, Say, View, call, do, say
from support.incidents.shared import (
    described,
    edited,
    is_newer,
    is_weak,
    newer,
    result,
    role,
    tool,
    weaker,
    with_parameter,
    without_argument,
    without_line,
)
from support.incidents.stage import Outage, Run, Setup
from support.incidents.wording import states

PRODUCTS = (
    ("headphones", "electronics", 129.0),
    ("espresso grinder", "kitchen", 84.0),
    ("desk lamp", "home", 46.5),
    ("hiking boots", "outdoor", 119.9),
    ("mechanical keyboard", "electronics", 154.0),
    ("winter jacket", "clothing", 179.0),
    ("cast iron pan", "kitchen", 58.0),
)
PEOPLE = ("Mara Lindt", "Jonas Weber", "Priya Nair", "Tom Okafor", "Elena Rossi", "Sam Carter")
SHOPS = ("Northwind Goods", "Halden Supply", "Brook & Pine")

_TOOLS = (
    tool("get_order", "Look up an order.", order_id="The order's number"),
    tool("get_customer", "Look up a customer by the order.", order_id="The order's number"),
    tool("search_policy", "Search the policy handbook.", category="Category of the product", query="What to look for"),
    tool("track_parcel", "Ask the carrier where a parcel is.", order_id="The order's number"),
    tool("search_tickets", "Search earlier tickets.", order_id="The order's number", query="What to look for"),
    tool("add_note", "Write a note into the order's file.", order_id="The order's number", note="The note"),
    tool(
        "issue_refund",
        "Pay money back. The amount is in dollars.",
        order_id="The order's number",
        amount="# The amount",
        method="card or store_credit",
        reason="Why, for the books",
    ),
    tool("escalate", "Hand the case to a person.", order_id="The order's number", queue="Which team", note="For them"),
    tool("reship", "Send the product again.", order_id="The order's number", reason="Why, for the books"),
    tool("send_email", "Write to the customer.", order_id="The order's number", template="Which letter", body="Text"),
    tool("close_ticket", "Close the ticket.", order_id="The order's number", resolution="A resolution code"),
)
_READ_ONLY = frozenset({"get_order", "get_customer", "search_policy", "track_parcel", "search_tickets"})
_DAMAGE = "Damaged goods are refunded in full and need not be sent back."


def _system(random: Random, shop: str) -> str:
    rules = [
        "Look up the order and the customer before anything else.",
        "Read the policy of the product's category before you decide.",
        f"Refunds above ${random.choice([300, 400])} go to the supervisor queue.",
        _DAMAGE,
        f"Opened products have a restocking fee of {random.choice([10, 15])}%.",
        "Gold members never pay a restocking fee.",
        "Customers with three or more refunds in their tickets go to the risk queue.",
        "Where the carrier cannot be reached, hand the case to the logistics queue.",
        "Leave a note in the order's file before you decide.",
        "Pay back to the card unless the customer asks for something else.",
        "Write to the customer before you close the ticket.",
        "Be kind, be short, and never promise a date of delivery.",
    ]
    listed = "\n".join(f"{number}. {rule}" for number, rule in enumerate(rules, 1))
    return f"You work at the refund desk of {shop}. You have tools for everything you need.\n\nRules:\n{listed}"


def _setup(random: Random) -> Setup:
    product, category, price = random.choice(PRODUCTS)
    order = f"{random.choice('ABKR')}-{random.randint(1000, 9999)}"
    api = random.choice(["anthropic", "chat", "anthropic"])
    shop = random.choice(SHOPS)
    desk = role(
        api,
        _system(random, shop),
        _TOOLS,
        parameters={"limit": 1024, "temperature": 0.2},
        streamed=random.random() < 0.4,
    )
    sorter = role(api, f"You sort the mail of {shop}. Answer with JSON: category, urgent.", weak=True)
    return Setup(
        roles={"desk": desk, "sorter": sorter},
        question=f"My {product} from order {order} arrived, I opened it, and it is just not for me. "
        "It works fine. Could you take it back and refund me?",
        facts={
            "product": product,
            "category": category,
            "price": price,
            "order": order,
            "name": random.choice(PEOPLE),
            "tier": "silver",
            "opened": True,
            "days": random.randint(4, 11),
            "window": 30,
            "parcel": "delivered",
            "tickets": [{"topic": "invoice", "text": "Asked for a copy of the invoice, sent."}],
        },
    )


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────


def tool_result(setup: Setup, meant: CallIntent, random: Random) -> str:
    facts = setup.facts
    match meant.tool:
        case "get_order":
            fields = {
                "order_id": facts["order"],
                "product": facts["product"],
                "category": facts["category"],
                "price": facts["price"],
                "currency": "USD",
                "opened": facts["opened"],
                "days_since_delivery": facts["days"],
                "warehouse": "W2",
            }
            return result(random, **fields)
        case "get_customer":
            return result(random, name=facts["name"], tier=facts["tier"], since=2019, newsletter=True)
        case "search_policy":
            texts = [
                f"{facts['category'].capitalize()} can be returned within {facts['window']} days of delivery.",
                "Gift cards and downloads are never refunded.",
                "Return labels are sent by email and stay valid for two weeks.",
            ]
            hits = [{"text": text, "score": round(random.uniform(0.5, 0.98), 4)} for text in texts]
            return result(random, hits=hits)
        case "track_parcel":
            if facts["parcel"] == "timeout":
                return f"error: timeout while contacting the carrier (after {random.uniform(5, 6):.2f}s)"
            return result(random, order_id=facts["order"], state=facts["parcel"], scans=4)
        case "search_tickets":
            return result(random, count=len(facts["tickets"]), tickets=facts["tickets"])
        case "issue_refund":
            return result(random, ok=True, refund_id=f"rf_{hexes_of(random)}", amount=meant.decisive["amount"])
    return result(random, ok=True, id=hexes_of(random))


def hexes_of(random: Random) -> str:
    return f"{random.getrandbits(40):010x}"


def _play(run: Run) -> None:
    setup = run.setup
    clock = 0.0
    if "sorting" not in setup.skips:
        sorter = run.talk("sorter", _sorter_mind)
        sorter.user(f"Sort this mail:\n\n{setup.question}")
        sorter.ask()
        clock = sorter.clock
    desk = run.talk("desk", desk_mind, at=clock)
    desk.read_only = _READ_ONLY
    for wish in setup.follow_ups:
        desk.user(wish)
        desk.ask()
    desk.user(setup.question)
    desk.converse(lambda meant, random: tool_result(setup, meant, random), most=24)


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────


def _sorter_mind(view: View) -> Intent:
    return say("refund", exact=json.dumps({"category": "refund", "urgent": "broken" in view.asked}))


_CLOSES = (
    "[Let me know|Just tell me|Please reach out] if [there is anything else|you need anything else].",
    "[Is there anything else I can help with?|Anything else I can do for you?|Can I help with anything else today?]",
    "[Have a great day!|All the best.|Thank you for your patience.|Thanks for shopping with us!]",
)
_OPENS = (
    "[Good news|Thanks for waiting|Thank you for your patience|All done][!|.|, and here is where we are.]",
    "[Hi|Hello|Hello again][,|!]",
    "[I've looked into this|I had a look at your case|I have gone through your order][.| for you.]",
)


def desk_mind(view: View) -> Intent:
    if "store credit" in view.asked and "order" not in view.asked:
        return _noted()
    for step in (_looks_up, _reads_up, _checks_parcel, _notes, _decides, _writes, _closes):
        intent = step(view)
        if intent is not None:
            return intent
    return _reports(view)


def _noted() -> Say:
    ways = (
        "[Noted|Understood|Got it]: [store credit it is|you would like store credit|store credit, not your card].",
        "[Sure|Of course], [I'll keep in mind|I will remember] that you [want|prefer] store credit.",
        "[Thanks|Thank you] for [telling me|letting me know]. [Store credit|A credit for our store] [will do|is fine].",
    )
    asks = ("[Which order is it about?|What is your order's number?|Could you tell me the order's number?]",)
    return say("noted", states(*ways), states(*asks, last=True))


def _order(view: View) -> str:
    found = re.search(r"\b[A-Z]-\d{4}\b", view.asked)
    assert found is not None, "customers name their orders"
    return found[0]


def _looks_up(view: View) -> Intent | None:
    if view.did("get_order"):
        return None
    order = _order(view)
    return do(
        call("get_order", order_id=order),
        call("get_customer", order_id=order),
        beside=(
            "[I'll|Let me|I am going to] [look up|pull up|check] [the|your] [order|purchase] [first|now|for you].",
            "[Sure|Of course|Happy to help][,|!] [let me see|let me check|I'll see] what [we have|is] on file.",
            "[First|To begin], the [details of the order and the account|order and who placed it].",
        ),
    )


def _reads_up(view: View) -> Intent | None:
    if view.did("search_policy") or ((is_weak(view.model) and not view.did("track_parcel")) and _skips_policy(view)):
        return None
    facts = json.loads(view.result("get_order"))
    product, category = facts["product"], facts["category"]
    query = (
        f"[return|refund] [policy|rules|conditions] [for|of] [opened|used] {category}",
        f"[how long can|can] [opened|used] {category} be [returned|sent back]",
        f"{category} [return window|refund window|returns] [opened box|after opening]",
        f"[what does the handbook say about|policy on] [returning|refunding] [a|an opened] {product}",
    )
    return do(
        call("search_policy", {"query": query}, category=category),
        call("track_parcel", order_id=_order(view)),
        beside=(
            f"[Now|Next], [the policy for {category}|what the handbook says] [and the parcel|and where the parcel is].",
            "[I need|Let me get] [the return rules|the policy] and [the tracking|the carrier's data].",
            "[The order is there|I found the order|Found it]. [Checking|I'll check] the policy [and the parcel|next].",
        ),
    )


def _skips_policy(view: View) -> bool:
    """A weak model forgets a rule."""
    return "Read the policy" in view.system


def _checks_parcel(view: View) -> Intent | None:
    if view.did("search_tickets"):
        return None
    query = (
        "[earlier|previous|past] [refunds|complaints|tickets] [of this customer|by this customer]",
        "[refund|complaint] [history|tickets] [for this order|of the customer]",
        "[has this customer asked for refunds before|other tickets about refunds]",
    )
    return do(
        call("search_tickets", {"query": query}, order_id=_order(view)),
        beside=(
            "[Let me see|I'll see|Checking] whether there [are|were] [earlier|other] tickets.",
            "[One more look|A quick look] at [the history|earlier tickets] [before I decide|first].",
            "",
        ),
    )


def _notes(view: View) -> Intent | None:
    if view.did("add_note") or "Leave a note" not in view.system:
        return None
    product = json.loads(view.result("get_order"))["product"]
    note = (
        f"[Customer|Client] [wants to return|asks to return|would like to send back] the {product}. [Checked|Read] "
        "[order, policy and tickets|the file and the handbook].",
        f"[Return|Refund] [requested|asked for] for {product}; [file, parcel and policy checked|all data reviewed].",
        f"[Reviewed|Looked at] the case: {product}, [refund wanted|customer asks for money back].",
    )
    return do(
        call("add_note", {"note": note}, order_id=_order(view)),
        beside=(
            "[I'll leave|Leaving|Let me add] a note [in the file|on the order] [first|before I go on].",
            "[A note for the file|For the record|Documenting this] [first|before deciding].",
        ),
    )


def _decides(view: View) -> Intent | None:
    if any(view.did(name) for name in ("issue_refund", "escalate", "reship")):
        return None
    order = _order(view)
    tickets = json.loads(view.result("search_tickets"))
    parcel = view.result("track_parcel")
    if parcel.startswith("error") and "carrier cannot be reached" in view.system:
        return _escalates(order, "logistics", "the carrier cannot be reached")
    if sum(one["topic"] == "refund" for one in tickets["tickets"]) >= 3:
        return _escalates(order, "risk", "there are several earlier refunds")
    if view.heads("photo") or is_newer(view.snapshot) or view.parameters.get("temperature", 0) > 0.8:
        return _asks_for_photo(order)
    if '"in_transit"' in parcel:
        reason = ("[Parcel|Package] [never arrived|is still on its way]", "[Lost|Not delivered] [by the carrier|yet]")
        return do(call("reship", {"reason": reason}, order_id=order), beside=_ACTS)
    amount, why = _amount(view)
    if amount is None:
        return _declines(view)
    limit = re.search(r"Refunds above \$(\d+)", view.system)
    if limit is not None and amount > int(limit[1]):
        return _escalates(order, "supervisor", f"${amount:.2f} is above the limit")
    return _refunds(view, order, amount, why)


_ACTS = (
    "[All clear|That settles it|Everything checks out][, so|:] [I'll go ahead|going ahead|let me do it] [now|].",
    "[I have|We have] [all I need|everything|what is needed]. [Going ahead|Doing it now|Proceeding].",
    "[On to|Now for] the [decision|next step].",
)


def _amount(view: View) -> tuple[float | None, str]:
    """What is paid back, and why so much."""
    order = json.loads(view.result("get_order"))
    if re.search(r"cracked|broken|damaged", view.asked) and _DAMAGE in view.system:
        return order["price"], "it arrived damaged"
    hits = view.result("search_policy")
    window = re.search(r"within (\d+) days", hits)
    if window is not None and order["days_since_delivery"] > int(window[1]):
        return None, "too late"
    fee = re.search(r"restocking fee of (\d+)%", view.system)
    gold = "Gold members never pay" in view.system and '"gold"' in view.result("get_customer")
    promised = "promised a full refund" in view.result("search_tickets")
    if order["opened"] and fee is not None and not gold and not promised:
        return round(order["price"] * (1 - int(fee[1]) / 100), 2), f"a {fee[1]}% restocking fee applies"
    return order["price"], "no fee applies"


def _refunds(view: View, order: str, amount: float, why: str) -> Intent:
    cents = "in cents" in view.tools["issue_refund"].description
    arguments: dict[str, Any] = {"order_id": order, "amount": round(amount * 100) if cents else amount}
    if view.has("issue_refund", "method"):
        arguments["method"] = "store_credit" if "store credit" in view.asked else "card"
    reason = (
        f"[Customer returns the product|Product is sent back|Return within the window]; {why}",
        f"[Return|Refund] [as the policy allows|by the book|within policy], {why}",
        f"[Approved|Granted]: {why}",
    )
    return do(call("issue_refund", {"reason": reason}, **arguments), beside=_ACTS)


def _escalates(order: str, queue: str, why: str) -> Intent:
    note = (
        f"[Please take over|Could you take this one|For you to decide]: {why}.",
        f"[Handing this over|Over to you] [because|since] {why}.",
        f"[Needs a person|Needs your eyes]; {why}.",
    )
    beside = ("[I have to|I need to|I'll] [hand this over|pass this on] to [a colleague|the right team].",)
    return do(call("escalate", {"note": note}, order_id=order, queue=queue), beside=beside)


def _asks_for_photo(order: str) -> Intent:
    return say(
        "asks for a photo",
        states(
            "[Could|Can|Would] you send [me|us] a photo of the [product|item] [first|before I go on]?",
            "[Before I can go on|To continue], [could you upload|please send] a [photo|picture] of the item?",
        ),
        states(
            "[Then|After that] [I can|I'll be able to] [decide|go on] [with order {order}|].".replace("{order}", order),
            "[I need it|It is needed] [to process|for] the return.",
        ),
        opens=_OPENS,
    )


def _declines(view: View) -> Intent:
    order = json.loads(view.result("get_order"))
    days = order["days_since_delivery"]
    return say(
        f"declines after {days} days",
        states(
            "I cannot [refund|take back] the [product|item]",
            "[a refund|a return] is not possible [any more|any longer]",
            reason=[f"it was delivered {days} days ago", f"{days} days have passed since [delivery|it arrived]"],
        ),
        states("[I am sorry|My apologies] [for|about] [that|the bad news].", optional=True),
        opens=_OPENS,
        closes=_CLOSES,
    )


def _outcome(view: View) -> tuple[str, str]:
    """A code, and a sentence."""
    if view.did("escalate"):
        (meant, _), *_rest = view.results("escalate")
        return f"escalated_{meant.decisive['queue']}", f"passed on to the {meant.decisive['queue']} team"
    if view.did("reship"):
        return "reshipped", "sent again"
    (meant, _), *_rest = view.results("issue_refund")
    by_card = meant.decisive.get("method") != "store_credit"
    amount = meant.decisive["amount"]
    return "refunded", f"refunded with ${amount:.2f} {'to your card' if by_card else 'as store credit'}"


def _writes(view: View) -> Intent | None:
    if view.did("send_email"):
        return None
    code, outcome = _outcome(view)
    product = json.loads(view.result("get_order"))["product"]
    body = (
        f"[Hello|Hi|Dear customer], [your {product} was|the {product} was|the {product} has been] {outcome}.",
        f"[This is to let you know|We are writing to say|Just a quick note] that your {product} was {outcome}.",
        f"Your [request|case] about the {product} is [done|closed]: {outcome}. [Regards|Best wishes|The refund desk]",
    )
    return do(
        call("send_email", {"body": body}, order_id=_order(view), template=code),
        beside=(
            "[Now|Next], the [email|letter] to the customer.",
            "[Let me write|Writing|I'll write] to the customer.",
            "",
        ),
    )


def _closes(view: View) -> Intent | None:
    if view.did("close_ticket"):
        return None
    return do(
        call("close_ticket", order_id=_order(view), resolution=_outcome(view)[0]),
        beside=("[Closing|I'm closing|Let me close] the ticket [now|].", "[Last|Finally], the ticket [itself|].", ""),
    )


def _reports(view: View) -> Intent:
    _, outcome = _outcome(view)
    order = json.loads(view.result("get_order"))
    product = order["product"]
    return say(
        outcome,
        states(
            f"[Your|The] {product} [was|has been|is] {outcome}.",
            f"[I have made sure that|It is settled:] your {product} [was|has been] {outcome}.",
            f"[Done|All set]: {product}, {outcome}.",
        ),
        states(
            "[You will get|We have sent you|There is] an email [with the details|that confirms this|about it].",
            "[A confirmation|The confirmation] [is in your inbox|was sent by email|is on its way to your inbox].",
        ),
        states(
            f"[This is about|It concerns] order {_order(view)}, delivered {order['days_since_delivery']} days ago.",
            f"[For reference|For your records], the order is {_order(view)}.",
            optional=True,
        ),
        states(
            "[Depending on your bank, it|It] may take a few days [to show up|to appear].",
            "[Please allow|Give it] a few days.",
            optional=True,
        ),
        opens=_OPENS,
        closes=_CLOSES,
    )


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────

_BROKEN = "arrived with a cracked housing, so I cannot use it"


def _limit(setup: Setup, random: Random) -> Setup:
    limit = _limit_of(setup)
    return edited(setup, "desk", f"above ${limit}", f"above ${random.choice([20, 25, 30])}")


def _limit_of(setup: Setup) -> str:
    found = re.search(r"Refunds above \$(\d+)", setup.roles["desk"].system)
    assert found is not None, "the prompt has a limit"
    return found[1]


def _fee_of(setup: Setup) -> str:
    found = re.search(r"fee of (\d+)%", setup.roles["desk"].system)
    assert found is not None, "the prompt has a fee"
    return found[1]


def _fee(setup: Setup, random: Random) -> Setup:
    return edited(setup, "desk", f"fee of {_fee_of(setup)}%", f"fee of {random.choice([25, 35, 40])}%")


def _changed_tickets(setup: Setup, random: Random) -> Setup:
    told = {"topic": "refund", "text": "Refunded in full."}
    return setup.with_facts(tickets=[*setup.facts["tickets"], told, told, told])


def _broken(setup: Setup) -> Setup:
    """The customer's product came broken."""
    question = setup.question.replace("arrived, I opened it, and it is just not for me. It works fine.", f"{_BROKEN}.")
    assert question != setup.question, "the question tells why"
    return replace(setup, question=question)


def _wish(setup: Setup) -> Setup:
    """The customer has said before how the money is to be paid."""
    return replace(setup, follow_ups=("Before we begin: if I get money back, I want it as store credit, please.",))


def _promise(setup: Setup) -> Setup:
    told = {"topic": "delivery", "text": "Parcel was late; was promised a full refund should it be sent back."}
    return setup.with_facts(tickets=[told])


AGENT = ScriptedAgent(
    name="support",
    setup=_setup,
    play=_play,
    incidents=(
        incident("limit", "system", "SYSTEM", _limit, lambda a, b: ["Refunds above", _limit_of(a), _limit_of(b)]),
        incident("fee", "system", "SYSTEM", _fee, lambda a, b: ["restocking fee", _fee_of(a), _fee_of(b)]),
        incident(
            "damage-rule",
            "system",
            "SYSTEM",
            lambda setup, _: without_line(setup, "desk", "Damaged goods"),
            lambda a, b: ["need not be sent back"],
            prepare=_broken,
        ),
        incident(
            "weak-model",
            "model",
            "MODEL",
            lambda setup, _: weaker(setup, "desk"),
            lambda a, b: [a.roles["desk"].model, b.roles["desk"].model],
        ),
        incident(
            "snapshot",
            "snapshot",
            "SNAPSHOT",
            lambda setup, _: newer(setup, "desk"),
            lambda a, b: [a.roles["desk"].snapshot, b.roles["desk"].snapshot],
        ),
        incident(
            "cents",
            "tools",
            "TOOLS",
            lambda setup, _: described(setup, "desk", "issue_refund", "in dollars", "in cents"),
            lambda a, b: ["dollars", "cents"],
        ),
        incident(
            "lost-argument",
            "tools",
            "TOOLS",
            lambda setup, _: without_argument(setup, "desk", "issue_refund", "method"),
            lambda a, b: ["card or store_credit"],
            prepare=_wish,
        ),
        incident(
            "temperature",
            "parameters",
            "PARAMETERS",
            lambda setup, _: with_parameter(setup, "desk", temperature=1.0),
            lambda a, b: ["temperature"],
        ),
        incident(
            "max-tokens",
            "parameters",
            "PARAMETERS",
            lambda setup, _: with_parameter(setup, "desk", limit=16),
            lambda a, b: [("max_tokens", "max_completion_tokens"), "1024", "16"],
        ),
        incident(
            "broken",
            "input",
            "INPUT",
            lambda setup, _: _broken(setup),
            lambda a, b: ["it is just not for me", "cracked housing"],
        ),
        incident(
            "late",
            "tool result",
            "TOOL_OUTPUT",
            lambda setup, random: setup.with_facts(days=random.randint(38, 61)),
            lambda a, b: ["days_since_delivery", str(a.facts["days"]), str(b.facts["days"])],
        ),
        incident(
            "no-tickets",
            "tool result",
            "TOOL_OUTPUT",
            lambda setup, _: setup.with_facts(tickets=[]),
            lambda a, b: ["promised a full refund"],
            prepare=_promise,
        ),
        incident("refunds-before", "tool result", "TOOL_OUTPUT", _changed_tickets, lambda a, b: ["Refunded in full"]),
        incident(
            "carrier-down",
            "tool result",
            "TOOL_OUTPUT",
            lambda setup, _: setup.with_facts(parcel="timeout"),
            lambda a, b: ["timeout while contacting the carrier"],
        ),
        incident(
            "tier",
            "far tool result",
            "TOOL_OUTPUT",
            lambda setup, _: setup.with_facts(tier="silver"),
            lambda a, b: ["gold", "silver"],
            prepare=lambda setup: setup.with_facts(tier="gold"),
        ),
        incident(
            "forgets",
            "history",
            "HISTORY",
            lambda setup, _: replace(setup, forgets=frozenset({"Before we begin"})),
            lambda a, b: ["I want it as store credit"],
            prepare=_wish,
        ),
        incident(
            "fallback",
            "fallback",
            "ERROR MODEL",
            lambda setup, _: replace(
                setup,
                outages={("desk", 1): Outage(status=529 if setup.roles["desk"].api == "anthropic" else 429)},
                fallback=weaker(setup, "desk").roles["desk"].model,
            ),
            lambda a, b: [b.fallback or "", ("529", "429", "verloaded", "rate limit")],
        ),
        incident(
            "coin",
            "sampling",
            "SAMPLING",
            lambda setup, _: replace(setup, coins=frozenset({"photo"})),
            lambda a, b: [("photo", "picture")],
        ),
        incident(
            "no-sorting",
            "path",
            "PATH",
            lambda setup, _: replace(setup, skips=frozenset({"sorting"})),
            lambda a, b: [("category", "Sort this mail", "sort the mail")],
        ),
    ),
)
