"""What tells bad runs from good ones, though no text ever repeats."""

import json
from random import Random

import pytest

from rewind.compare.cause import CauseKind
from rewind.compare.columns import unlabelled_order
from rewind.compare.groups import GroupFinding, GroupVerdict, compare_groups
from unit.compare.chats import Chat, Tape

WORDS = (
    "certainly right check order please wait moment looking records details customer account happy help assist gladly"
)
QUERIES = (
    "refund policy for this order",
    "the policy on refunds of an order",
    "what is our refund policy for orders?",
    "policy: order refunds",
)
PAID = (
    "The refund is on its way.",
    "Your refund is on its way to you.",
    "The money is on its way: your refund is made.",
)
DENIED = ("I cannot refund this order.", "I am sorry, but I cannot refund this order.", "This order I cannot refund.")
KIND, HARSH = "Be kind. Refunds take five days.", "Be kind. Ask a manager about everything. Refunds take five days."


class Desk:
    """Runs of a refund desk, in other words each time."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)

    def prose(self, words: int = 8) -> str:
        return " ".join(self.random.choices(WORDS.split(), k=words)).capitalize() + "."

    def run(
        self,
        *,
        refunds: bool = True,
        system: str = KIND,
        model: str = "claude-sonnet-4-6",
        status: str | None = None,
        days: int | None = None,
        settings: dict[str, object] | None = None,
        reads_more: float = 0.3,
        overloaded: bool = False,
    ) -> Tape:
        draw = self.random
        tape = Tape()
        chat = Chat(tape, system=system, model=model, prefix=f"toolu_{draw.getrandbits(64):016x}")
        chat.settings |= settings or {}
        chat.user(f"{self.prose()} I want my money back for order {draw.randint(1000, 9999)}.")
        if overloaded:
            chat.fails(at=1001.0)
        chat.says(self.prose(), [("lookup", {"question": draw.choice(QUERIES)})])
        given = {
            "status": status or draw.choice(["active", "open", "shipped"]),
            "days": days if days is not None else draw.randint(3, 9),
            "note": self.prose(4),
            "score": round(draw.random(), 3),
            "trace": f"{draw.getrandbits(64):016x}",
        }
        chat.results(json.dumps(given))
        if draw.random() < reads_more:
            chat.says(self.prose(), [("read_policy", {"question": draw.choice(QUERIES)})]).results(self.prose(12))
        if refunds:
            chat.says(self.prose(), [("refund", {"amount": 5})]).results("ok").says(draw.choice(PAID))
        else:
            chat.says(draw.choice(DENIED))
        return tape


def compared(goods: list[Tape], bads: list[Tape]) -> GroupFinding:
    return compare_groups([tape.run() for tape in goods], [tape.run() for tape in bads])


CAUSES: list[tuple[dict[str, object], CauseKind, str]] = [
    ({"system": HARSH}, CauseKind.SYSTEM, '"Ask a manager about everything."'),
    ({"model": "claude-haiku-4-5"}, CauseKind.MODEL, "claude-haiku-4-5"),
    ({"status": "frozen"}, CauseKind.TOOL_OUTPUT, 'status "frozen"'),
    ({"days": 46}, CauseKind.TOOL_OUTPUT, "days 46"),
    ({"settings": {"temperature": 1.5}}, CauseKind.PARAMETERS, "1.5"),
    ({"overloaded": True}, CauseKind.ERROR, "a try failed with 529"),
]


@pytest.mark.parametrize("have", [10, 8])
@pytest.mark.parametrize(("change", "kind", "text"), CAUSES)
def test_a_cause_is_found_among_texts_that_never_repeat_also_in_eight_of_ten(
    have: int, change: dict[str, object], kind: CauseKind, text: str
) -> None:
    desk = Desk()
    goods = [desk.run() for _ in range(10)]
    bads = [desk.run(refunds=False, **(change if number < have else {})) for number in range(10)]  # type: ignore[arg-type]
    found = compared(goods, bads)
    assert found.verdict is GroupVerdict.CAUSE
    (cause, *_) = found.causes
    assert cause.kind is kind
    assert cause.tested[0].feature.text == text
    assert (cause.evidence.good_with, cause.evidence.bad_with) == (0, have)
    assert found.at is not None
    assert {"refund"} == {call.tool for run in found.columns[found.at].decisions[:10] if run for call in run.calls}


def test_a_number_that_never_repeats_is_told_by_how_large_it_is() -> None:
    desk = Desk()
    goods = [desk.run(days=number % 7 + 3) for number in range(8)]
    bads = [desk.run(refunds=False, days=number + 40) for number in range(8)]
    found = compared(goods, bads)
    first = found.causes[0].tested[0]
    assert (first.feature.place, first.feature.text, first.feature.opposite) == ("lookup", "days ≥ 40", "days ≤ 9")


def test_what_always_goes_together_is_named_together() -> None:
    desk = Desk()
    bads = [desk.run(refunds=False, status="frozen", days=46) for _ in range(6)]
    (cause, *_) = compared([desk.run() for _ in range(6)], bads).causes
    assert {'status "frozen"', "days 46"} <= {one.feature.text for one in cause.tested}


def test_where_nothing_asked_or_given_differs_they_part_without_a_cause() -> None:
    desk = Desk(3)
    found = compared([desk.run() for _ in range(8)], [desk.run(refunds=False) for _ in range(8)])
    assert (found.verdict, found.causes) == (GroupVerdict.PARTING, ())


def test_what_comes_after_the_parting_is_no_cause() -> None:
    desk = Desk()
    found = compared([desk.run() for _ in range(6)], [desk.run(refunds=False, status="frozen") for _ in range(6)])
    assert all(one.feature.place != "refund" for cause in found.causes for one in cause.tested)


def test_mere_noise_is_called_that() -> None:
    alarms = 0
    for seed in range(12):
        desk = Desk(seed)
        tapes = [desk.run(refunds=desk.random.random() < 0.5) for _ in range(12)]
        alarms += compared(tapes[:6], tapes[6:]).verdict is not GroupVerdict.NOTHING
    assert alarms <= 2


def test_of_two_runs_on_a_side_it_says_how_many_more_it_takes() -> None:
    desk = Desk()
    found = compared([desk.run() for _ in range(2)], [desk.run(refunds=False, system=HARSH) for _ in range(2)])
    assert (found.verdict, found.causes, found.needed) == (GroupVerdict.TOO_FEW, (), (2, 1))
    assert found.nearest[0].kind is CauseKind.SYSTEM


def test_an_extra_read_has_a_column_of_its_own() -> None:
    desk = Desk()
    with_it = [desk.run(reads_more=1.0) for _ in range(3)]
    without = [desk.run(reads_more=0.0) for _ in range(4)]
    columns = compared(without, with_it).columns
    assert [column.answers for column in columns] == [(0,) * 7, (None,) * 4 + (0,) * 3, (0,) * 7, (0,) * 7]


def test_the_order_of_the_sides_does_not_change_what_is_tested() -> None:
    desk = Desk()
    runs = [desk.run(refunds=number % 2 == 0).run() for number in range(8)]
    assert [runs[at] for at in unlabelled_order(runs)] == [runs[::-1][at] for at in unlabelled_order(runs[::-1])]
    one, other = compare_groups(runs[:4], runs[4:]), compare_groups(runs[4:], runs[:4])
    assert one.test.patterns == other.test.patterns
    assert [column.answers for column in other.columns] == [
        (*column.answers[4:], *column.answers[:4]) for column in one.columns
    ]


def test_what_a_plain_request_brought_back_is_a_cause_too() -> None:
    desk = Desk()

    def answer(document: str, said: tuple[str, ...]) -> Tape:
        tape, draw = Tape(), desk.random
        chat = Chat(tape).user(f"{desk.prose()} What about my order?")
        hits = [{"document": document, "score": round(draw.random(), 3)}]
        found = {"hits": hits, "took_ms": draw.randint(3, 90)}
        tape.add({"query": draw.choice(QUERIES)}, found, path="/v1/search", host="search.example.com")
        chat.says(draw.choice(said))
        return tape

    goods = [answer("policy-2026", PAID) for _ in range(8)]
    bads = [answer("policy-2019" if number < 6 else "policy-2026", DENIED) for number in range(8)]
    (cause,) = compared(goods, bads).causes
    assert cause.kind is CauseKind.TOOL_OUTPUT
    first = cause.tested[0].feature
    assert (first.place, first.text) == ("POST search.example.com/v1/search", 'hits[].document "policy-2019"')
