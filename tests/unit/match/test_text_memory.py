"""What was made of a text is remembered, in bounded memory."""

from rewind.match.text_memory import TextMemory


def test_it_remembers_until_it_is_full() -> None:
    memory: TextMemory[int] = TextMemory(most=10)
    memory.put(1, "then", "now")
    assert (memory.get("then", "now"), memory.get("now", "then")) == (1, None)
    memory.put(2, "other")
    assert (memory.get("then", "now"), memory.get("other")) == (None, 2)
