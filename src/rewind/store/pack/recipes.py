"""Recipes as what changed: the writing side picks what to lean on, the reading side follows it back.

A request differs from the one before in a few places (an id at its front, a cache marker near its end, the new
messages), so a recipe is a list of spans: so many names from there on in the base's recipe, or so many new ones.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rewind.store.pack.frames import NEW, BadFrame, Frame, Recipe, Span

_REMEMBERED = 32
_ALIKE = 0.9
_MOST_NAMES = 2**22


def common_run(one: Sequence[bytes], start: int, other: Sequence[bytes], begin: int) -> int:
    """How many items are equal from there on. Doubling and halving keep the comparing in C, and linear."""
    most = min(len(one) - start, len(other) - begin)
    run, step = 0, 1
    while run < most:
        step = min(step, most - run)
        low, low_other = start + run, begin + run
        if one[low : low + step] == other[low_other : low_other + step]:
            run, step = run + step, step * 2
        elif step == 1:
            break
        else:
            step //= 2
            most = min(most, run + step * 2)
    return run


@dataclass(frozen=True, slots=True)
class _Known:
    """A recipe that was written, ready to be leaned on."""

    offset: int
    names: list[bytes]
    where: dict[bytes, int]

    def share(self, names: list[bytes]) -> int:
        return sum(map(self.where.__contains__, names))


class Conversations:
    """The last recipe of each conversation seen lately; a new recipe leans on the one it continues."""

    def __init__(self) -> None:
        self._recent: deque[_Known] = deque(maxlen=_REMEMBERED)

    def lean(self, body: bytes, names: list[bytes]) -> Recipe:
        """The recipe of these chunk names, as short as the recent ones allow."""
        best, most = None, 0
        for known in reversed(self._recent):
            share = known.share(names)
            if share > most:
                best, most = known, share
            if share > _ALIKE * len(names):
                break
        if best is None:
            return Recipe(body, None, ((NEW, len(names)),), tuple(names))
        self._recent.remove(best)
        if most < _ALIKE * len(best.names):  # not its continuation: that one may still come
            self._recent.append(best)
        spans, fresh = _spans(best, names)
        return Recipe(body, best.offset, tuple(spans), tuple(fresh))

    def remember(self, offset: int, names: list[bytes]) -> None:
        """The recipe that was written at that offset."""
        self._recent.append(_Known(offset, names, {name: i for i, name in enumerate(names)}))


def _spans(base: _Known, names: list[bytes]) -> tuple[list[Span], list[bytes]]:
    spans: list[Span] = []
    fresh: list[bytes] = []
    i = expected = unsaid = 0
    while i < len(names):
        # Glue repeats itself; where it is expected it most likely goes on.
        here = expected if base.names[expected : expected + 1] == [names[i]] else base.where.get(names[i])
        if here is None:
            fresh.append(names[i])
            i, expected, unsaid = i + 1, expected + 1, unsaid + 1
            continue
        if unsaid:
            spans.append((NEW, unsaid))
            unsaid = 0
        run = common_run(base.names, here, names, i)
        spans.append((here, run))
        i, expected = i + run, here + run
    if unsaid:
        spans.append((NEW, unsaid))
    return spans, fresh


class Expander:
    """Gives the full list of names back. Raises BadFrame where a base is gone."""

    def __init__(self, frames: Mapping[int, Frame]) -> None:
        self._frames = frames
        self._lately: OrderedDict[int, list[bytes]] = OrderedDict()

    def names(self, frame: Frame) -> list[bytes]:
        """Down the bases to one that is known or leans on nothing, and up again."""
        chain = [frame]
        while chain[-1].offset not in self._lately and (base := self._base(chain[-1])) is not None:
            chain.append(base)
        names = self._lately.get(chain[-1].offset, [])
        for at in reversed(chain):
            if at.offset not in self._lately:
                names = _apply(at, names)
        self._lately[frame.offset] = names
        self._lately.move_to_end(frame.offset)
        if len(self._lately) > _REMEMBERED:
            self._lately.popitem(last=False)
        return names

    def _base(self, frame: Frame) -> Frame | None:
        recipe = _recipe(frame)
        if recipe.base is None:
            return None
        base = self._frames.get(recipe.base)
        if base is None or base.table.recipe is None or base.offset >= frame.offset:
            raise BadFrame(f"the recipe at {frame.offset} leans on one at {recipe.base} that is gone")
        return base


def _apply(frame: Frame, base: list[bytes]) -> list[bytes]:
    """The names of this recipe, given those of its base."""
    recipe = _recipe(frame)
    names: list[bytes] = []
    fresh = iter(recipe.fresh)
    for start, count in recipe.spans:
        part = list(islice(fresh, count)) if start == NEW else base[start : start + count]
        names += part
        # The second bound keeps spans that repeat each other from doubling without end.
        if len(part) != count or len(names) > _MOST_NAMES:
            raise BadFrame(f"the recipe at {frame.offset} makes no sense")
    return names


def _recipe(frame: Frame) -> Recipe:
    assert frame.table.recipe is not None, "only frames with a recipe are asked for one"
    return frame.table.recipe
