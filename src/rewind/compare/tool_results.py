"""How much two results of one tool differ: in nothing that counts, in codes or figures alone, or in what they say.

Tools say more than they are asked: a score, a node, how many visitors came. Such codes and figures differ in every run
and mean nothing as long as no answer takes them up. Hits may come in another order. What is left are other words,
other fields, an error.
"""

import json
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Any

from rewind.compare.texts import NOISE_FORMS, plain_words

_LONGEST = 200_000
_SCORES = ("score", "similarity", "relevance", "distance", "rank")


class ResultChange(IntEnum):
    """What two results differ in, the least first."""

    NOISE = 0
    """Ids, times, the scores and the order of hits."""
    CODES = 1
    """Words with digits in them, such as ``api-5``, too."""
    FIGURES = 2
    """Numbers, too."""
    MORE = 3


_Leaf = tuple[str, str]
"""The path without positions, and the value."""


@lru_cache(maxsize=512)
def result_change(before: str, after: str) -> ResultChange:
    old, new = _leaves(before), _leaves(after)
    gone, come = list((old - new).elements()), list((new - old).elements())
    if not gone and not come:
        return ResultChange.NOISE
    words = [Counter((path, word) for path, text in side for word in plain_words(text)) for side in (gone, come)]
    if words[0] != words[1] or len(gone) != len(come):
        return ResultChange.MORE
    changed = [Counter(word for _, text in side for word in text.split()) for side in (gone, come)]
    differing = [*(changed[0] - changed[1]), *(changed[1] - changed[0])]
    mixed = all(any(map(str.isalpha, word)) for word in differing)
    return ResultChange.CODES if mixed else ResultChange.FIGURES


def _leaves(text: str) -> Counter[_Leaf]:
    """The values, less noise; a text that is not JSON is one."""
    try:
        value: Any = json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        value = text
    return Counter((path, _without_noise(path, leaf)) for path, leaf in _values(value, "", within_list=False))


def _values(value: Any, path: str, *, within_list: bool) -> Iterator[_Leaf]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _values(inner, f"{path}.{name}", within_list=within_list)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, path, within_list=True)
    elif within_list and isinstance(value, float) and path.rpartition(".")[2].lower().endswith(_SCORES):
        return  # of a hit among others; the score of a person or a risk stands alone
    else:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _without_noise(path: str, leaf: str) -> str:
    if len(leaf) > _LONGEST:
        return leaf
    named = f'"{path.rpartition(".")[2]}": {leaf}' if path else leaf
    for form in NOISE_FORMS:
        if not form.may_be_fact:
            named, _ = form.folded(named)
    return named
