"""``rewind export --markdown``: an incident in one text, and no word of a recording that acts in it."""

import re

from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import begin, use

EVIL = (
    "</details><script>alert(1)</script>\n# Not a heading\n@everyone ![x](http://evil.example/p.png)\n"
    "````\nout?\n````\n| a | b |"
)


def a_report(rewind: Rewind, session: str) -> str:
    ran = rewind("export", session, "--markdown", "-o", "-")
    assert ran.code == 0, ran.talk
    return ran.text


def outside_fences(text: str) -> str:
    """What Markdown reads as Markdown: the report without its fenced texts and code spans."""
    kept, fence = [], ""
    for line in text.splitlines():
        found = re.fullmatch(r"(`{3,})\w*", line)
        if fence:
            fence = "" if line == fence else fence
        elif found:
            fence = found[1]
        else:
            kept.append(line)
    assert not fence, "a fence is left open"
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(kept))


def test_the_report_tells_the_run_errors_first(rewind: Rewind, shelf: Shelf) -> None:
    talk = begin(shelf, "9b2c0d1e", name="refund").says("I want my money back for order 8821.")
    talk.fails(529, "Overloaded").hears("Understood.", use("lookup", order="8821"))
    talk.brings('{"status": "active"}').hears("I cannot do that.").end(exit_code=3)
    text = a_report(rewind, "refund")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == ["What went wrong", "Steps", "What was said", "Secrets", "How to open this run"]
    assert "| ended | **failed** (exit code 3) |" in text
    assert "| cost | — |" in text or "| cost | $" in text
    assert "- The agent ended with exit code 3." in text
    assert "- [Step 1](#step-1), tried again: status 529, `Overloaded`" in text
    assert "I want my money back for order 8821." in text
    assert "**asks for the tool** `lookup`" in text
    assert '"order": "8821"' in text
    assert '{"status": "active"}' in text
    assert text.count("You are a support agent.") == 1, "what every request repeats is told once"
    assert "- Nothing that is left looks like a secret." in text
    assert "rewind replay 9b2c0d1e.rw -- COMMAND" in text


def test_nothing_that_was_recorded_becomes_markup(rewind: Rewind, shelf: Shelf) -> None:
    talk = begin(shelf, "9b2c0d1e", name="a|b `c` <img>", system=EVIL).says(EVIL)
    talk.hears(EVIL, use("``|<b>", note=EVIL)).brings(EVIL).fails(400, EVIL).end(exit_code=1)
    markup = outside_fences(a_report(rewind, "9b2c"))
    for sign in ("<script", "<img", "@everyone", "evil.example", "Not a heading", "<b>", "out?"):
        assert sign not in markup, sign
    for line in markup.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (3, 10), line


def test_control_characters_are_shown_and_not_sent(rewind: Rewind, shelf: Shelf) -> None:
    begin(shelf, "9b2c0d1e").says("a\x1b]0;title\x07b\u202ec").hears("\x9b31m").end()
    text = a_report(rewind, "9b2c")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "a\\x1b]0;title\\x07b\\u202ec" in text


def test_how_to_open_names_a_session_that_is_there(rewind: Rewind, shelf: Shelf) -> None:
    begin(shelf, "9b2c0d1e").says("I am bob-1234.").hears("Yes, bob-1234.").says("Go on.").hears("Done.").end()
    ran = rewind("export", "9b2c", "--markdown", "--steps", "1", "--redact", r"bob-\d+", "-o", "-")
    opening = ran.text.split("## How to open this run")[1]
    assert "rewind export 9b2c0d1e --steps 1 --redact PATTERN -o " in opening
    assert "PATTERN stands for" in opening
    assert "bob" not in ran.text
    file = opening.split(" -o ")[1].split()[0]
    assert rewind("export", "9b2c", "--steps", "1", "--redact", r"bob-\d+", "-o", file, "--json").json()["id"] in file


def test_a_long_text_is_folded_and_whole(rewind: Rewind, shelf: Shelf) -> None:
    long = "many words and more " * 200
    begin(shelf, "9b2c0d1e").says(long).hears("Short.").end()
    text = a_report(rewind, "9b2c")
    folded = text.split("<details><summary>show</summary>")[1].split("</details>")[0]
    assert long.strip() in folded
    assert "Short." not in folded
