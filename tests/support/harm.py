"""Files as a failing disk leaves them: cut, flipped, zeroed, swapped, doubled; every choice comes from the given dice.

Half of the harms go by what the file is made of (a journal's lines, a pack's frames, a part's records), because an
accident that keeps to these borders is the one that checksums alone do not notice.
"""

import random
import re
import struct
from itertools import pairwise

Dice = random.Random

HARMS = ("cut", "flip", "zero", "swap", "duplicate")


def harmed(data: bytes, dice: Dice, kind: str, harm: str) -> bytes:
    """The data after one accident; ``kind`` says what file it is."""
    pieces = pieces_of(data, kind) if dice.random() < 0.5 else []
    match harm:
        case "cut":
            at = dice.randrange(len(data))
            if len(pieces) > 1:
                at = sum(map(len, pieces[: dice.randrange(1, len(pieces))]))
            return data[:at]
        case "flip":
            flipped = bytearray(data)
            flipped[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            return bytes(flipped)
        case "zero":
            start = dice.randrange(len(data))
            size = min(dice.choice((1, 16, 512, 4096)), len(data) - start)
            return data[:start] + bytes(size) + data[start + size :]
        case "swap" | "duplicate":
            pieces = pieces if len(pieces) > 1 else random_pieces(data, dice)
            one, other = sorted(dice.sample(range(len(pieces)), 2))
            if harm == "swap":
                pieces[one], pieces[other] = pieces[other], pieces[one]
            else:
                pieces.insert(dice.choice((one + 1, other)), pieces[one])
            return b"".join(pieces)
    raise AssertionError(harm)


def pieces_of(data: bytes, kind: str) -> list[bytes]:
    """What the file is made of; one piece where that is not known."""
    match kind:
        case "journal" | "cassette":
            return data.splitlines(keepends=True)
        case "pack":
            starts = [found.start() for found in re.finditer(b"RWP1[\x01\x02][\x01-\x05]\0\0", data)]
            return [data[start:end] for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
        case "part":
            records, start = [], 0
            while start < len(data):
                (size,) = struct.unpack_from("<I", data, start)
                records.append(data[start : start + 16 + size])
                start += 16 + size
            return records
    return [data]


def random_pieces(data: bytes, dice: Dice) -> list[bytes]:
    borders = sorted({0, len(data), *(dice.randrange(len(data)) for _ in range(4))})
    return [data[start:end] for start, end in pairwise(borders)]
