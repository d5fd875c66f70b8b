"""What is said at the end."""

from rewind.pytest_plugin.report import chosen, headline, summary_lines, unplayed
from rewind.pytest_plugin.usage import CassetteUsage, usage_from

NOW = 1_800_000_000.0
DAY = 86400.0


def played(cassette: str = "a.rw", *, used: tuple[int, ...] = (1, 2), **more: object) -> CassetteUsage:
    known = {"test": "t", "cassette": cassette, "action": "play", "passed": True, "on_tape": (1, 2), "played": used}
    return CassetteUsage(**{"replayed": len(used), "saved": 0.5, **known, **more})  # type: ignore[arg-type]


def test_the_headline_counts_money_and_what_was_left_over() -> None:
    usages = [played(), played("b.rw", used=(1,), recorded=NOW - 190.5 * DAY)]
    assert headline(usages, now=NOW, old_after=180) == (
        "rewind: 3 replayed, 0 live, saved $1.00 · 1 unused step · 1 cassette 190 days old"
    )


def test_an_unknown_price_is_never_nothing() -> None:
    unknown = played(saved=None, saved_unpriced=2)
    assert "saved —, 2 calls unpriced" in headline([unknown], now=NOW, old_after=180)
    assert "saved $0.500, 2 calls unpriced" in headline([unknown, played()], now=NOW, old_after=180)


def test_live_calls_say_what_they_cost() -> None:
    live = played(action="record", replayed=0, live=3, spent=0.0123, saved=None, wrote=True, on_tape=())
    assert headline([live], now=NOW, old_after=180) == (
        "rewind: 0 replayed, 3 live (spent $0.012) · 1 cassette written"
    )


def test_a_step_that_one_of_two_tests_plays_is_not_left_over() -> None:
    assert unplayed([played(used=(1,)), played(used=(2,))]) == []
    (left,) = unplayed([played(used=(1,)), played(used=(1,))])
    assert str(left) == "a.rw: step 2 was not played (1 of 2)"
    (left,) = unplayed([played(used=())])
    assert str(left) == "a.rw: none of its 2 steps was played"


def test_a_failed_test_says_nothing_about_what_is_left_over() -> None:
    assert unplayed([played(used=(1,), passed=False)]) == []
    assert unplayed([played(used=(1,)), played(used=(), action="extend")]) == []


def test_details_need_asking_but_secrets_do_not() -> None:
    usages = [played(used=(1,), blocked=("https://x.example/\x1b[2J",), secrets=("step 1: an API key",))]
    brief = summary_lines(usages, ["old.rw"], now=NOW, old_after=180, verbose=False)
    assert brief[1:] == ["  a.rw: step 1: an API key: check it before you commit", "  old.rw: no test uses it"]
    verbose = summary_lines(usages, [], now=NOW, old_after=180, verbose=True)
    assert "  a.rw: step 2 was not played (1 of 2)" in verbose
    assert r"  t: a connection to https://x.example/\x1b[2J was blocked" in verbose


def test_usage_survives_the_way_through_a_report() -> None:
    one = played(blocked=("x",), stale="why")
    assert usage_from({**one.plain(), "from_a_newer_rewind": 1}) == one


def test_a_review_takes_what_is_wanted_and_stops_when_told() -> None:
    stale = [played(test=str(number), stale="why") for number in range(5)]

    def answering(*answers: str) -> list[str]:
        left = iter(answers)
        shown: list[str] = []
        wanted = chosen(stale, show=shown.append, ask=lambda: next(left))
        assert "why" in shown
        return [usage.test for usage in wanted]

    assert answering("y", "n", "", "Y", "no") == ["0", "3"]
    assert answering("n", "a") == ["1", "2", "3", "4"]
    assert answering("y", "q") == ["0"]
