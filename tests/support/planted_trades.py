"""Three trades for planted runs: their prompts, tasks, tools and words, all invented."""

from support.planted_world import Domain, Tool

SUPPORT = Domain(
    prompt=(
        "You are a support agent for a mail-order shop.",
        "Be polite, short and exact.",
        "Look up the account before you say anything about an order.",
        "Refunds up to 200 dollars need no approval.",
        "Never promise a delivery date that the carrier has not confirmed.",
        "If a parcel is lost, offer a replacement first.",
        "Write amounts with their currency.",
        "Do not mention internal tools to the customer.",
        "When you are done, say in one sentence what you did.",
    ),
    other_prompt=(
        "Ask for explicit confirmation before any refund.",
        "Escalate every complaint to a human colleague.",
        "Answer in the customer's language, and keep a formal tone throughout.",
        "You work for the claims desk of an insurance company and treat each message as a claim.",
        "Close the ticket as soon as the customer has been answered once.",
        "Refuse requests that come without an order number.",
    ),
    tasks=(
        "My espresso machine from order A-1043 arrived broken and I would like my money back.",
        "Where is order A-2291? It should have been here last week, and the tracking page shows nothing.",
        "I was charged twice for order A-3377, please look into it and correct it.",
        "Please change the address of order A-4810 to the one in my account, if it has not left yet.",
    ),
    follow_ups=(
        "Thank you. Could you also send me the invoice once more?",
        "And what happens with the voucher I used on it?",
        "Please do it that way. How long will it take?",
        "One more thing: can the next parcel go to my office?",
    ),
    leads=(
        "Let me look into the account first.",
        "I will check what the carrier says about it.",
        "The account is in order, so I look at the order now.",
        "Next I compare that with the payment.",
        "I note this down for the warehouse.",
        "Let me see whether our policy covers it.",
    ),
    ends=(
        "I have refunded the full amount to your card; it takes three to five days.",
        "A replacement leaves our warehouse tomorrow and you will get its tracking number by mail.",
        "I cannot complete this without your explicit confirmation. Shall I go ahead?",
        "The second charge was a reservation and has already been released.",
        "Your order is on its way and the carrier expects to hand it over on Friday.",
        "I have passed this on to a colleague who will write to you today.",
        "The address is changed, and nothing else about the order is.",
    ),
    tools=(
        Tool(
            name="lookup_account",
            says="Finds a customer's account.",
            takes={"order": ("A-1043", "A-2291", "A-3377", "A-4810"), "fields": ("basic", "full")},
            gives={"customer": ("C-77", "C-81", "C-90"), "state": ("active", "paused"), "since": (2019, 2021, 2023)},
        ),
        Tool(
            name="check_order",
            says="Gives the state of an order.",
            takes={"order": ("A-1043", "A-2291", "A-3377", "A-4810")},
            gives={
                "state": ("delivered", "in transit", "packed"),
                "total": (189.0, 64.5, 240.0),
                "ordered": ("2026-02-27", "2026-01-14"),
            },
        ),
        Tool(
            name="search_policy",
            says="Searches the shop's rules.",
            takes={"query": ("refund after delivery", "lost parcel", "double charge"), "limit": (3, 5)},
            gives={},
            lines=(
                "Refunds within 30 days of delivery are granted.",
                "Opened coffee machines are checked by the workshop.",
                "A parcel counts as lost after ten days without a scan.",
                "Vouchers are paid back as vouchers.",
            ),
        ),
        Tool(
            name="track_parcel",
            says="Asks the carrier where a parcel is.",
            takes={"parcel": ("P-9001", "P-9002", "P-9003")},
            gives={"place": ("Lyon", "Ghent", "Porto"), "scans": (1, 4, 7), "late": (True, False)},
        ),
        Tool(
            name="add_note",
            says="Leaves a note for colleagues.",
            takes={"text": ("customer wants money back", "parcel is late", "address to be changed")},
            gives={"saved": (True,), "note": ("N-1", "N-2", "N-3")},
        ),
    ),
    other_tool=Tool(
        name="refund_order",
        says="Pays an order back.",
        takes={"order": ("A-1043", "A-2291", "A-3377"), "amount": (189.0, 64.5)},
        gives={"paid": (True,), "reference": ("R-5", "R-6")},
    ),
)

CODE = Domain(
    prompt=(
        "You are a coding agent in a Python repository.",
        "Read a file before you change it.",
        "Run the tests after each change and read what they say.",
        "Keep changes small and explain them in one paragraph.",
        "Do not add dependencies.",
        "Prefer the standard library and plain functions.",
        "Stop when all tests pass.",
        "Never touch files outside of the repository.",
    ),
    other_prompt=(
        "Do not run any command before the user has agreed to it.",
        "Write a test that fails before you repair anything.",
        "You only review: point at problems and change nothing.",
        "Rewrite whole modules rather than single lines, and use classes.",
        "Give up after one failed attempt and say why.",
    ),
    tasks=(
        "The parser fails on empty input; find out why and repair it.",
        "Make the export command write UTF-8 on every platform and show me what you changed.",
        "Speed up the loading of the index, which takes four seconds on my machine.",
        "The retry test is flaky; find the race and remove it without making the test slower.",
    ),
    follow_ups=(
        "Good. Does the same hold for the other parser?",
        "Please write the change log entry as well.",
        "Can you make that a bit shorter?",
        "What would break if we dropped the cache?",
    ),
    leads=(
        "I start with the file that the trace names.",
        "Now I look for the other callers.",
        "Let me run the tests to see where we stand.",
        "That explains the failure; I look at the helper next.",
        "I make the change and run the tests again.",
        "One more search, to be sure that nothing else depends on it.",
    ),
    ends=(
        "All tests pass now: the parser returns an empty list for empty input.",
        "I found the cause in the cache but did not change anything; the lock is taken too late.",
        "The export opens its file with an explicit encoding, and a test covers it.",
        "Loading takes 0.3 seconds now because the index is read lazily.",
        "I could not reproduce the failure in twenty runs, so I left the code as it is.",
        "The race is gone: the test waits for the event instead of for time.",
    ),
    tools=(
        Tool(
            name="read_file",
            says="Reads a file of the repository.",
            takes={
                "path": ("src/parser.py", "src/index.py", "src/export.py", "tests/test_retry.py"),
                "limit": (40, 80),
            },
            gives={},
            lines=(
                "def parse(text):",
                "    tokens = list(scan(text))",
                "    return build(tokens[0], tokens[1:])",
                "# the cache is filled on first use",
                "with open(path) as file:",
            ),
        ),
        Tool(
            name="grep",
            says="Searches the repository for a pattern.",
            takes={"pattern": ("parse\\(", "open\\(", "Lock\\(", "retry"), "glob": ("*.py", "src/*.py")},
            gives={"matches": (0, 3, 12), "first": ("src/cli.py:14", "src/index.py:88", "src/export.py:7")},
        ),
        Tool(
            name="run_tests",
            says="Runs the tests.",
            takes={"select": ("tests/test_parser.py", "tests/test_retry.py", "tests")},
            gives={
                "passed": (41, 42, 57),
                "failed": (0, 1, 2),
                "first_failure": ("test_empty", "test_two_writers", ""),
            },
        ),
        Tool(
            name="edit_file",
            says="Replaces text in a file.",
            takes={
                "path": ("src/parser.py", "src/index.py"),
                "old": ("tokens[0]", "open(path)"),
                "new": ("tokens[:1]", "open(path, encoding='utf-8')"),
            },
            gives={"changed": (1, 2), "state": ("written",)},
        ),
        Tool(
            name="list_files",
            says="Lists a folder.",
            takes={"folder": ("src", "tests", "docs")},
            gives={},
            lines=("parser.py", "index.py", "export.py", "cli.py", "cache.py"),
        ),
    ),
    other_tool=Tool(
        name="git_log",
        says="Shows who changed a file last.",
        takes={"path": ("src/parser.py", "src/index.py"), "limit": (3, 10)},
        gives={"commits": (3, 10), "latest": ("cache: read lazily", "parser: allow comments")},
    ),
)

TRAVEL = Domain(
    prompt=(
        "You plan journeys by train.",
        "Offer two connections at most, the shorter one first.",
        "Check the weather for walks and outdoor plans.",
        "Give prices in euros and times in local time.",
        "Book nothing: you only look things up.",
        "Hotels must be within a short walk of the station.",
        "If a train is late more than half an hour, look for another.",
    ),
    other_prompt=(
        "Always prefer night trains, however long they take.",
        "Book the first connection that fits without asking.",
        "The traveller uses a wheelchair, so avoid changes at small stations.",
        "You sell package tours and recommend the house's own hotels in every answer.",
        "Answer with a table and no other words.",
    ),
    tasks=(
        "I need to be in Ghent on Friday before noon, coming from Basel, and would like a hotel for one night.",
        "Plan two days in Porto with children, arriving from Lisbon by train in the morning.",
        "What is the best way from Turin to Lyon next week if I want to see the mountains by daylight?",
        "Find a connection from Graz to Trieste that takes bicycles and leaves after nine.",
    ),
    follow_ups=(
        "And the way back on Sunday evening?",
        "Is there something cheaper if I leave a day earlier?",
        "Does that hotel have breakfast before seven?",
        "What do we do if it rains on the second day?",
    ),
    leads=(
        "I look for connections first.",
        "Now the weather for these days.",
        "Let me see which hotels are near the station.",
        "I compare that with the connection by day.",
        "The prices may differ, so I check them.",
        "One last look at delays on this line.",
    ),
    ends=(
        "Take the 6:42 to Brussels and change there; you arrive at 11:18, and the hotel is next to the station.",
        "There is no connection that fits, the earliest arrival is at 13:05.",
        "The day train takes an hour longer but shows you the valley in full light.",
        "Both days will be dry, so the river walk can stay in the plan.",
        "I found two trains that take bicycles; the one at 9:31 is cheaper.",
        "The night train is sold out, and I would go by way of Milan.",
    ),
    tools=(
        Tool(
            name="find_trains",
            says="Finds connections between two towns.",
            takes={
                "start": ("Basel", "Lisbon", "Turin", "Graz"),
                "end": ("Ghent", "Porto", "Lyon", "Trieste"),
                "day": ("Fri", "Sat"),
            },
            gives={"leaves": ("6:42", "8:10", "9:31"), "arrives": ("11:18", "12:40", "13:05"), "changes": (0, 1, 2)},
        ),
        Tool(
            name="weather",
            says="Gives the forecast for a town.",
            takes={"city": ("Ghent", "Porto", "Lyon", "Trieste"), "days": (1, 2, 3)},
            gives={"sky": ("clear", "cloudy", "rain"), "high": (11, 17, 24), "wind": ("light", "strong")},
        ),
        Tool(
            name="find_hotels",
            says="Finds hotels near a station.",
            takes={"city": ("Ghent", "Porto", "Lyon"), "nights": (1, 2)},
            gives={},
            lines=(
                "Hotel Terminus, 94 euros, 2 minutes",
                "The Clockmaker, 81 euros, 7 minutes",
                "Pension Flora, 58 euros, 9 minutes",
                "Grand Hotel, 190 euros, 4 minutes",
            ),
        ),
        Tool(
            name="fares",
            says="Gives prices of a connection.",
            takes={"train": ("IC 91", "EC 37", "TGV 9242"), "travellers": (1, 2, 4)},
            gives={"price": (29.9, 54.0, 118.5), "class": (1, 2), "seats": (0, 3, 41)},
        ),
        Tool(
            name="delays",
            says="Tells how punctual a train was lately.",
            takes={"train": ("IC 91", "EC 37", "TGV 9242")},
            gives={"mean_minutes": (2, 9, 34), "cancelled": (0, 1)},
        ),
    ),
    other_tool=Tool(
        name="book_seat",
        says="Reserves a seat.",
        takes={"train": ("IC 91", "EC 37"), "seats": (1, 2)},
        gives={"reserved": (True,), "car": (3, 11)},
    ),
)

DOMAINS = (SUPPORT, CODE, TRAVEL)
