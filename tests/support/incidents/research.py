"""A research agent: one leads, three scouts look at one vendor each at the same time, in conversations of their own."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from support.incidents.case import ScriptedAgent, incident
from support.incidents.intent import CallIntent, FromTool, Intent, View, call, do, say
from support.incidents.shared import (
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
from support.incidents.stage import Conversation, Outage, Over, Run, Setup
from support.incidents.wording import states

_VENDORS = ("Cloudora", "Nimbusly", "Stratify", "Vaultex", "Hexbase", "Tidalhost", "Granite", "Polarix")
_SERVICES = ("managed Postgres", "log storage", "message queues", "object storage")
_LEAD_TOOLS = (
    tool("read_brief", "Read what the company has written down about this purchase.", topic="Which service"),
    tool(
        "delegate",
        "Let a scout find out about one vendor.",
        vendor="The vendor",
        region="Where it is to be hosted: EU or US",
        task="What the scout is to find out",
    ),
    tool("check_terms", "Look at a vendor's contract.", vendor="The vendor", question="What to look for"),
    tool("write_report", "File the report.", winner="The vendor", price="# Per month", body="The report"),
)
_SCOUT_TOOLS = (
    tool("search", "Search the web.", site="Only on this site", query="What to look for"),
    tool("open_page", "Open a page. Give the whole address, with https.", url="The page"),
)


def _setup(random: Random) -> Setup:
    vendors = random.sample(_VENDORS, k=3)
    service = random.choice(_SERVICES)
    lead_system = (
        f"You lead research on {service} and have scouts for the legwork.\n"
        "Read the company's brief first.\n"
        "Send out one scout for each vendor, all at once.\n"
        "Recommend the cheapest vendor that fits.\n"
        "Only vendors with an uptime of at least 99.5% fit.\n"
        "Look at the contract terms of the winner before you report.\n"
        "File a report, then tell the user in a few sentences."
    )
    scout_system = (
        "You are a scout: you find out about one vendor and report to the lead.\n"
        "Search on the vendor's own site.\n"
        "Open the page with prices and the page with the status, both.\n"
        "Report the regular price, never a promotion.\n"
        "Be brief; name the price, the uptime and the region."
    )
    lead_api, scout_api = random.choice([("anthropic", "anthropic"), ("anthropic", "gemini"), ("chat", "gemini")])
    prices = sorted(random.sample(range(90, 300, 7), k=3))
    random.shuffle(prices)
    facts = {
        vendor: {"price": price, "promo": price - 60, "uptime": uptime, "region": region, "page": "", "hits": True}
        for vendor, price, uptime, region in zip(
            vendors, prices, ("99.97", "99.91", "99.6"), ("EU", "EU", "EU"), strict=True
        )
    }
    return Setup(
        roles={
            "lead": role(lead_api, lead_system, _LEAD_TOOLS, parameters={"limit": 2048, "temperature": 0.3}),
            "scout": role(
                scout_api,
                scout_system,
                _SCOUT_TOOLS,
                parameters={"limit": 1024, "temperature": 0.3},
                streamed=random.random() < 0.3,
            ),
        },
        question=f"We need {service}. Please compare {', '.join(vendors[:2])} and {vendors[2]} and recommend one. "
        "We can spend at most $400 a month.",
        facts={"vendors": vendors, "service": service, "data": facts, "brief": "No preference as to where it runs."},
    )


def _cheapest(setup: Setup) -> str:
    data = setup.facts["data"]
    return min(setup.facts["vendors"], key=lambda vendor: data[vendor]["price"])


def _with_vendor(setup: Setup, vendor: str, **changes: object) -> Setup:
    data = setup.facts["data"]
    return setup.with_facts(data={**data, vendor: {**data[vendor], **changes}})


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────


def _site(vendor: str) -> str:
    return f"{vendor.lower()}.example"


def _page(setup: Setup, meant: CallIntent, random: Random) -> str:
    vendor = next(one for one in setup.facts["vendors"] if _site(one) in json.dumps(dict(meant.decisive)))
    facts = setup.facts["data"][vendor]
    if meant.tool == "search":
        pages = ("pricing", "status", "about") if facts["hits"] else ()
        hits = [
            {"url": f"https://{_site(vendor)}/{page}", "title": f"{vendor}: {page}", "score": round(random.random(), 3)}
            for page in pages
        ]
        random.shuffle(hits)
        return result(random, site=_site(vendor), hits=hits)
    if facts["page"]:
        return f"HTTP 403 Forbidden: {facts['page']} (ray {hexes(random, 12)})"
    page = str(meant.decisive["url"]).rpartition("/")[2]
    head = f"{vendor} | fetched {stamp(random)} | visitor {random.randint(1000, 99999)}\n\n"
    match page:
        case "pricing":
            return (
                f"{head}Team plan: ${facts['price']} per month, all inclusive.\n"
                f"This week only: ${facts['promo']} per month for new customers.\n"
            )
        case "status":
            return f"{head}All systems operational. Uptime of the last twelve months: {facts['uptime']}%.\n"
        case "terms":
            return f"{head}Cancel at any time.\n"
    return f"{head}{vendor} is hosted in the {facts['region']}.\n"


def _play(run: Run) -> None:
    setup = run.setup
    lead = run.talk("lead", _lead_mind)
    lead.read_only = frozenset({"read_brief"})
    for remark in setup.follow_ups:
        lead.user(remark)
        lead.ask()
    lead.user(setup.question)
    for _ in range(20):
        said = lead.ask()
        if not said.calls:
            return
        results = _scouted(run, lead, [meant for _, meant, _ in said.calls if meant.tool == "delegate"])
        for name, meant, _ in said.calls:
            text = results.get(meant.key) or _lead_tool(setup, meant, lead.volatile(meant))
            lead.entries.append(FromTool(name, meant, text, innocent=said.innocent))


def _scouted(run: Run, lead: Conversation, tasks: list[CallIntent]) -> dict[str, str]:
    """What the scouts report, who set out at about the same time."""
    tasks = sorted(tasks, key=lambda meant: meant.key)
    run.drawing("who goes first", from_level=2).shuffle(tasks)
    began, ended, reports, lost = lead.clock, [lead.clock], {}, False
    for at, meant in enumerate(tasks):
        vendor = meant.decisive["vendor"]
        if vendor in run.setup.skips:
            reports[meant.key] = "skipped: no scout is free"
            continue
        scout = run.talk(f"scout {vendor}", _scout_mind, role="scout", at=began + 0.05 + at * 0.03)
        scout.read_only = frozenset({"search", "open_page"})
        region = meant.decisive.get("region", "any region")
        scout.user(f"Vendor: {vendor} ({_site(vendor)}). Hosting: {region}. Find out price, uptime and region.")
        try:
            reports[meant.key] = scout.converse(lambda meant, random: _page(run.setup, meant, random), most=12)
        except Over:
            lost = True  # the others are under way
        ended.append(scout.clock)
    if lost:
        raise Over
    lead.clock = max(ended) + 0.01
    return reports


def _lead_tool(setup: Setup, meant: CallIntent, random: Random) -> str:
    match meant.tool:
        case "read_brief":
            return f"Purchase of {setup.facts['service']}. {setup.facts['brief']} (rev {hexes(random)})"
        case "check_terms":
            return result(random, vendor=meant.decisive["vendor"], notice_days=30, term="monthly")
    return result(random, ok=True, report=f"R-{hexes(random, 6)}")


# ── the scouts ───────────────────────────────────────────────────────────────────────────────────────────────


def _scout_mind(view: View) -> Intent:
    found = re.search(r"Vendor: (\w+) \(([\w.]+)\)", view.asked)
    assert found is not None, "a scout is told its vendor"
    vendor, site = found.groups()
    if not view.did("search"):
        query = (
            f"{vendor} [price|pricing|cost] [uptime|and status|status page]",
            f"[how much does|what does] {vendor} cost [per month|], [uptime|how reliable is it]",
            f"{vendor} [plans and prices|monthly price], [service level|uptime], [region|hosting]",
        )
        beside = (
            f"[Let me|I'll] [search|look at] [the site of {vendor}|what {vendor} says].",
            f"[Searching|Looking] for {vendor} [first|].",
            "",
        )
        return do(call("search", {"query": query}, site=site), beside=beside)
    if '"hits": []' in view.result("search"):
        return say(
            f"nothing about {vendor}",
            states(f"[I found nothing|There is nothing] [about|on] {vendor}.", f"[No results|No pages] for {vendor}."),
            states("[The search was empty.|The site has no pages that can be found.]", optional=True),
        )
    if not view.did("open_page"):
        return _opens_pages(view, site)
    if "403 Forbidden" in view.result("open_page"):
        return say(
            f"{vendor} cannot be read",
            states(f"[I could not|I was unable to] [open|read] the pages of {vendor}: [403|403 Forbidden]."),
            states(f"[So|Therefore] I [have no|cannot name a] price [for {vendor}|]."),
        )
    return _scout_reports(view, vendor)


def _opens_pages(view: View, site: str) -> Intent:
    start = "" if "without https" in view.tools["open_page"].description else "https://"
    pages = ["pricing", "status"]
    if is_weak(view.model) or "both" not in view.system:
        pages = ["pricing"]
    elif is_newer(view.snapshot):
        pages = ["pricing", "status", "terms"]
    beside = (
        "[Opening|Let me open] [the pages|what I found|these].",
        "[Found them|There they are|Good hits][.|, now to read them.]",
        "",
    )
    return do(*(call("open_page", url=f"{start}{site}/{page}") for page in pages), beside=beside)


def _scout_reports(view: View, vendor: str) -> Intent:
    pages = "\n".join(text for _, text in view.results("open_page"))
    regular, promo = re.findall(r"\$(\d+) per month", pages)[:2]
    price = regular if "never a promotion" in view.system else promo
    uptime = re.search(r"months: ([\d.]+)%", pages)
    up = f"{uptime[1]}%" if uptime is not None else "not known"
    if view.heads(f"yearly {vendor}"):
        price = str(int(regular) * 12)
    return say(
        f"{vendor} ${price} {up}",
        states(
            f"{vendor} [costs|charges|asks for] ${price} [per month|a month|monthly].",
            f"[The price of {vendor} is|With {vendor} you pay] ${price} [per month|a month].",
            f"[Price|Cost]: ${price} [per month|a month] [for the team plan|] ({vendor}).",
        ),
        states(
            f"[The uptime is|Its uptime was|Uptime:] {up}.",
            f"[They were up|It was available] {up} [of the time|over the last year].",
        ),
        states("[I read|Sources:] [the pages on prices and status|their own pages].", optional=True),
        states("[All inclusive.|Nothing is added to that.]", optional=True),
        opens=("[Here is what I found|My findings][:|.]", f"[Report on|About] {vendor}[:|.]"),
    )


# ── the lead ─────────────────────────────────────────────────────────────────────────────────────────────────


def _lead_mind(view: View) -> Intent:
    vendors = re.search(r"compare (\w+), (\w+) and (\w+) and", view.asked)
    if vendors is None:
        return _noted(view)
    if not view.did("read_brief"):
        beside = ("[First|To begin with], the [brief|company's brief].", "[Let me|I'll] read the brief [first|].", "")
        service = re.search(r"We need ([\w ]+)\.", view.asked)
        return do(call("read_brief", topic=service[1] if service is not None else ""), beside=beside)
    if not view.did("delegate"):
        return _sends_out(view, vendors.groups())
    winner, price = _winner(view)
    if winner is None:
        return say(
            "none fits",
            states("[None of them fits|No vendor fits|I cannot recommend any of them] [the budget|your limits|]."),
            states("[All of them|Each one] [are too expensive|cost more than you can spend]."),
        )
    if not view.did("check_terms") and "contract terms" in view.system and not is_weak(view.model):
        question = (
            "[notice period|how to cancel] [and contract length|and term]",
            "[can one cancel monthly|how long is one bound]",
        )
        leads = (f"[{winner} it is|{winner} leads|{winner} looks best]; [the terms next|what about the terms].", "")
        return do(call("check_terms", {"question": question}, vendor=winner), beside=leads)
    if not view.did("write_report"):
        body = (
            f"[We compared|Compared were] three vendors. {winner} [wins|is best] [with|at] ${price} a month.",
            f"[Recommendation|Result]: {winner}, ${price} [per month|a month]. [The others cost more or do not fit.|]",
            f"{winner} [fits|meets all needs] [and costs|for] ${price} a month.",
        )
        return do(
            call("write_report", {"body": body}, winner=winner, price=price),
            beside=("[Filing|Writing|Now] the report.", "[Time to write it up.|I'll write it up.]", ""),
        )
    return say(
        f"recommends {winner} at ${price}",
        states(
            f"[I recommend|My recommendation is|You should take|Go with] {winner}.",
            f"{winner} [is the best choice|is what I would take|comes out on top].",
        ),
        states(
            f"[It costs|The price is|You would pay] ${price} [per month|a month], [within your budget|which fits].",
            f"[At|For] ${price} a month it is the cheapest [that fits|of those that fit].",
        ),
        states("[The report is filed.|You find it all in the report.|A report is on file.]"),
        states("[The contract can be cancelled monthly|One can cancel with 30 days' notice].", optional=True),
        opens=("[We are done|Here is the result][.|:]", "[Thanks for waiting|All are back][.|!]"),
        closes=("[Shall I look into more?|Do you want to know more?]", "[Let me know|Tell me] what you decide."),
    )


def _noted(view: View) -> Intent:
    told = re.search(r"never recommend (\w+)", view.asked)
    vendor = told[1] if told is not None else "that vendor"
    return say(
        "noted",
        states(
            f"[Noted|Understood|Got it]: [no|never] {vendor}.",
            f"[Understood|All right], [I will not|I won't] recommend {vendor}.",
            f"[Thanks for telling me|Good to know], {vendor} [is out|will not be recommended|is off the list].",
        ),
        states("[What are you looking for?|What do you need?|Which service is it about?]", last=True),
    )


def _sends_out(view: View, vendors: tuple[str, ...]) -> Intent:
    region = "EU" if "in the EU" in view.result("read_brief") else "any"
    if view.heads("US"):
        region = "US"
    calls = []
    for vendor in vendors:
        task = (
            f"[Find out|Look up] [price, uptime and region|cost, reliability and hosting] of {vendor}.",
            f"[What does|How much does] {vendor} cost, [and how good is its uptime|is it reliable]? [Which region?|]",
            f"[Check|Research] {vendor}: [price|monthly price], [uptime|availability], [hosting|region].",
        )
        more = {"region": region} if view.has("delegate", "region") else {}
        calls.append(call("delegate", {"task": task}, vendor=vendor, **more))
    beside = (
        "[Sending out|I am sending out] [the scouts|three scouts].",
        "[Three scouts|One scout each], [all at once|in parallel].",
    )
    return do(*calls, beside=beside)


def _winner(view: View) -> tuple[str | None, int]:
    least = re.search(r"uptime of at least ([\d.]+)%", view.system)
    budget = re.search(r"at most \$(\d+)", view.asked)
    fitting = []
    for meant, text in view.results("delegate"):
        vendor, price, uptime = (
            meant.decisive["vendor"],
            re.search(r"\$(\d+)", text.replace(",", "")),
            re.search(r"([\d.]+)%", text),
        )
        if price is None or (f"never recommend {vendor}" in view.asked) or f"not {vendor}" in view.result("read_brief"):
            continue
        if least is not None and uptime is not None and float(uptime[1]) < float(least[1]):
            continue
        if budget is None or int(price[1]) <= int(budget[1]):
            fitting.append((int(price[1]), vendor))
    fitting.sort()
    if not fitting:
        return None, 0
    second = view.parameters.get("temperature", 0) > 0.8 and len(fitting) > 1
    price_of_it, vendor = fitting[1 if second else 0]
    return vendor, price_of_it


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────


def _weak_uptime(setup: Setup) -> Setup:
    """The cheapest is the least reliable."""
    return _with_vendor(setup, _cheapest(setup), uptime="99.62")


def _blocked(setup: Setup, page: str) -> Setup:
    return _with_vendor(setup, _cheapest(setup), page=page)


def _told_before(setup: Setup) -> Setup:
    told = f"Before you start: never recommend {_cheapest(setup)}, we had trouble with them."
    return replace(setup, follow_ups=(told,))


def _outage(setup: Setup, random: Random) -> Setup:
    status = 529 if setup.roles["scout"].api == "anthropic" else 503
    talk = f"scout {_cheapest(setup)}"
    fallback = weaker(setup, "scout").roles["scout"].model
    return replace(setup, outages={(talk, 1): Outage(status=status)}, fallback=fallback)


def _models(name: str) -> Callable[[Setup, Setup], list[str]]:
    return lambda a, b: [a.roles[name].model, b.roles[name].model]


AGENT = ScriptedAgent(
    name="research",
    setup=_setup,
    play=_play,
    incidents=(
        incident(
            "uptime-rule",
            "system",
            "SYSTEM",
            lambda s, _: edited(s, "lead", "99.5%", "99.9%"),
            lambda a, b: ["uptime of at least", "99.5", "99.9"],
            prepare=_weak_uptime,
        ),
        incident(
            "terms-rule",
            "system",
            "SYSTEM",
            lambda s, _: without_line(s, "lead", "contract terms"),
            lambda a, b: ["Look at the contract terms"],
        ),
        incident(
            "promotion-rule",
            "scout's system",
            "SYSTEM",
            lambda s, _: without_line(s, "scout", "never a promotion"),
            lambda a, b: ["never a promotion"],
        ),
        incident("lead-model", "model", "MODEL", lambda s, _: weaker(s, "lead"), _models("lead")),
        incident("scout-model", "scout's model", "MODEL", lambda s, _: weaker(s, "scout"), _models("scout")),
        incident(
            "snapshot",
            "snapshot",
            "SNAPSHOT",
            lambda s, _: newer(s, "scout"),
            lambda a, b: [a.roles["scout"].snapshot, b.roles["scout"].snapshot],
        ),
        incident(
            "addresses",
            "tools",
            "TOOLS",
            lambda s, _: described(s, "scout", "open_page", "whole address, with https", "address without https"),
            lambda a, b: ["whole address", "without"],
        ),
        incident(
            "lost-region",
            "tools",
            "TOOLS",
            lambda s, _: without_argument(s, "lead", "delegate", "region"),
            lambda a, b: ["Where it is to be hosted"],
        ),
        incident(
            "temperature",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "lead", temperature=1.0),
            lambda a, b: ["temperature"],
        ),
        incident(
            "max-tokens",
            "parameters",
            "PARAMETERS",
            lambda s, _: with_parameter(s, "scout", limit=10),
            lambda a, b: [("max_tokens", "maxOutputTokens"), "10"],
        ),
        incident(
            "budget",
            "input",
            "INPUT",
            lambda s, _: replace(s, question=s.question.replace("$400", "$80")),
            lambda a, b: ["400", "80", "a month"],
        ),
        incident(
            "price",
            "scout's tool result",
            "TOOL_OUTPUT",
            lambda s, _: _with_vendor(s, _cheapest(s), price=349),
            lambda a, b: ["Team plan", str(a.facts["data"][_cheapest(a)]["price"]), "349"],
        ),
        incident(
            "no-hits",
            "scout's tool result",
            "TOOL_OUTPUT",
            lambda s, _: _with_vendor(s, _cheapest(s), hits=False),
            lambda a, b: ["hits", f"https://{_site(_cheapest(a))}"],
        ),
        incident(
            "forbidden",
            "scout's tool result",
            "TOOL_OUTPUT",
            lambda s, _: _blocked(s, "this page is for customers"),
            lambda a, b: ["this page is for customers"],
        ),
        incident(
            "brief",
            "far tool result",
            "TOOL_OUTPUT",
            lambda s, _: s.with_facts(brief=f"We want anybody but not {_cheapest(s)}."),
            lambda a, b: [f"not {_cheapest(a)}"],
        ),
        incident(
            "forgets",
            "history",
            "HISTORY",
            lambda s, _: replace(s, forgets=frozenset({"Before you start"})),
            lambda a, b: [f"never recommend {_cheapest(a)}"],
            prepare=_told_before,
        ),
        incident(
            "fallback", "fallback", "ERROR MODEL", _outage, lambda a, b: [b.fallback or "", ("529", "503", "verloaded")]
        ),
        incident(
            "yearly",
            "scout returns otherwise",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({f"yearly {_cheapest(s)}"})),
            lambda a, b: [
                (str(a.facts["data"][_cheapest(a)]["price"] * 12), f"{a.facts['data'][_cheapest(a)]['price'] * 12:,}")
            ],
        ),
        incident(
            "other-region",
            "scout told otherwise",
            "SAMPLING",
            lambda s, _: replace(s, coins=frozenset({"US"})),
            lambda a, b: ['"US"'],
        ),
        incident(
            "fewer-scouts",
            "path",
            "PATH",
            lambda s, _: replace(s, skips=frozenset({s.facts["vendors"][1]})),
            lambda a, b: [a.facts["vendors"][1]],
        ),
    ),
)
