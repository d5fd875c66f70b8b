"""The kinds of tokens that differ from run to run though the run is the same: one table, with a reason for each row.

A token is a stretch of text. Plain numbers, words, amounts and short codes are never tokens: "order 66" and "order 67"
are two questions. What a user gave (a word of the command, its input, the environment, a test's parameter) is never
one, either: see :mod:`rewind.match.renaming`, which compares by this table.
"""

import re
from collections.abc import Callable
from enum import Enum
from itertools import pairwise, takewhile

from rewind.dataclass import dataclass
from rewind.match.written_times import WRITINGS


class Scope(Enum):
    """Where a difference in a token counts."""

    COUNTS = "counts"
    FOLDED = "folded"
    """Nowhere: it is no difference."""
    RESULTS = "results"
    """Everywhere but in what a tool gave back."""


class Evidence(Enum):
    """What must hold of two tokens before one is taken for the other's name."""

    FACT = "fact"
    """Both values are known to be the same fact of the two runs."""
    CLOCK = "clock"
    """Each is a reading of its own run's clock."""
    BOUND = "bound"
    """One name for each, both ways, in the whole replay; and no user gave it."""
    FREE = "free"
    """Nothing: such a token never means anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Where a difference in tokens of a kind counts, by what the two texts are compared for."""

    matching: Scope = Scope.FOLDED
    """In a request, when it is looked for on a tape."""
    output: Scope = Scope.FOLDED
    """In what the agent prints."""
    cause: Scope = Scope.FOLDED
    """As the reason why two runs parted."""
    decision: Scope = Scope.FOLDED
    """As part of what a model decided to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenKind:
    """One row of the table."""

    noun: str
    """``id``: for "but for 2 ids"."""
    reason: str
    evidence: Evidence
    uses: Uses
    patterns: tuple[re.Pattern[str], ...] = ()
    """The group ``token``, where there is one, is the token, and the rest how to know it."""
    is_drawn: Callable[[str], bool] | None = None
    """Whether such a text looks drawn by lot; a pattern alone cannot say."""


def _changes(text: str) -> int:
    """How often a letter follows a digit, a capital a small letter and so on."""
    kinds = ["d" if sign.isdigit() else "u" if sign.isupper() else "l" for sign in text if sign.isalnum()]
    return sum(one != other for one, other in pairwise(kinds))


def _mixed(text: str) -> bool:
    """Letters and digits in turns, as in what was drawn: ``a6e4b1c9``; not ``iphone15`` or ``20260001``."""
    signs = sum(sign.isalnum() for sign in text)
    return _has_both(text) and _changes(text) >= max(2, signs * 0.2)


def _has_both(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _reads_like_words(text: str) -> bool:
    """Whether most pairs of letters in it are usual ones: ``us2east1a``, and not ``x7kqmz2w``."""
    pairs = [one + other for one, other in pairwise(text.lower()) if one.isalpha() and other.isalpha()]
    return len(pairs) > 3 and sum(pair in _USUAL_PAIRS for pair in pairs) >= 0.6 * len(pairs)


def _is_short_id(text: str) -> bool:
    """A short one: hexadecimal, or of letters and digits in turns that are no words: not ``agent007``, ``gpt4mini``."""
    if not _has_both(text):
        return False
    return _HEX.fullmatch(text) is not None or (_changes(text) > 2 and not _reads_like_words(text))


def _is_prefixed(text: str) -> bool:
    """Behind the name of a part of a program a short id will do; behind any other word it might be a part number.
    What people number has no name of the run's making."""
    prefix, _, tail = re.sub(r"[_-](?=[^_-]*$)", "\0", text).partition("\0")
    words = re.split(r"[_-]", prefix.lower())
    if not _PEOPLES_WORDS.isdisjoint(words):
        return False
    if not _PROGRAM_WORDS.isdisjoint(words):
        return _is_short_id(tail)
    return len(tail) >= 16 and _mixed(tail) and _changes(tail) >= len(tail) * 0.3 and not _reads_like_words(tail)


def _is_long_id(text: str) -> bool:
    """Capitals, small letters and digits in turns, or the latter two alone: no name put together of words. JSON in
    base64, as in a web token, is data."""
    if not _has_both(text) or text.startswith("eyJ") or _reads_like_words(text):
        return False
    if re.split(r"[_-]", text.lower(), maxsplit=1)[0] in _PEOPLES_WORDS:
        return False
    if any(map(str.isupper, text)):
        return any(map(str.islower, text)) and _changes(text) >= len(text) * 0.35
    return text.isalnum() and len(text) <= 32 and _changes(text) >= len(text) * 0.2


def _is_temporary(text: str) -> bool:
    """What mkstemp draws is no word and no number: not ``tmp_backup1``, ``january`` or ``123456``."""
    drawn = re.sub(r"^tmp\.?", "", text)
    return not _reads_like_words(drawn) and (_changes(drawn) > 1 or (drawn != text and not drawn.isdigit()))


def _is_of_both_cases(text: str) -> bool:
    return any(map(str.isupper, text)) and any(map(str.islower, text)) and not _reads_like_words(text)


def _is_hexadecimal(text: str) -> bool:
    """Forty digits are a SHA-1, of contents or of a commit; twelve in capitals the address of a network card."""
    drawn = _has_both(text) and _changes(text) >= max(2 if len(text) > 12 else 3, len(text) * 0.1)
    return drawn and len(text) != 40 and not (len(text) == 12 and text.isupper())


def differ_as_drawn(then: str, now: str) -> bool:
    """Two ids that were drawn do not differ in a few places; numbers that somebody gave in turn do.

    UUIDs of the first version do: they are a time and the number of a machine.
    """
    if _UUID_OF_A_TIME.fullmatch(then):
        return True
    ahead = sum(takewhile(bool, map(str.__eq__, then, now)))
    behind = sum(takewhile(bool, map(str.__eq__, reversed(then), reversed(now))))
    same = sum(map(str.__eq__, then, now)) if len(then) == len(now) else ahead + behind
    return same <= (0.75 if min(len(then), len(now)) >= 12 else 0.5) * max(len(then), len(now))


_EDGE, _END = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_PROGRAM_WORD = (
    "agent|aiobj|aitxt|assistant|asst|call|chain|chatcmpl|chunk|cmpl|conversation|conv|correlation|event|evt|execution"
    "|exec|fc|generation|gen|installation|instance|interaction|invocation|lc|message|msg|node|operation|process|pyd"
    "|request|req|response|resp|rs|run|session|sess|span|step|stream|task|thread|toolu|tool|trace|turn|tu|worker|ws"
)
"""Parts of programs, which programs number for themselves; of two that begin alike the longer one first."""
_PROGRAM_WORDS = frozenset(_PROGRAM_WORD.split("|"))
_PEOPLES_WORDS = frozenset(
    re.findall(
        r"\w+",
        "account acct ami article ba blob booking card cart case ch checksum commit coupon cs cus cust customer "
        "device digest doc employee eni etag flag hash igw in inv invoice item key licence license listing "
        "member model offer ord order org part patient payment person pi plan pm po policy price prod product promo "
        "property re ref rtb seat serial seti sg sha si sku snap src sub subnet subscription tenant ticket tok "
        "transaction tree txn unit user usr vol voucher vpc ",
    )
)
"""What people number, and what stands for contents."""
_USUAL_PAIRS = frozenset(
    re.findall(
        r"\w+",
        "th he in er an re nd on en at ou ed ha to or it is hi es ng st ar se te al nt as le ve of me ea co ne "
        "ri ro de ra io ic ti li ce la ma us el ta ch di si no om ec ho pe ca il tr pr ns ur lo un em ot ul am "
        "ss ac wi po et ee mo sh ge ai ir ly ow wh so be ke fo ie ol ad id ut op su ag im iv ab ay ev up ap ty "
        "mi oo gh bo bl cl fi fr pl br vi da do ga go gr ct rt rs ld ll pa qu ia ni nc rm rd rk sc sk sp tt um "
        "va wa we wo ba ck tu od ds ep ey ew ue ",
    )
)
"""Of letters, in English."""
_UUID_OF_A_TIME = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[16][0-9A-Fa-f]{3}-[0-9A-Fa-f-]{17}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")

_NOWHERE = Uses()
_IN_RESULTS = Uses(matching=Scope.RESULTS, output=Scope.COUNTS, cause=Scope.RESULTS)
_AS_CAUSE = Uses(cause=Scope.COUNTS)

FOLDER = TokenKind(
    noun="folder",
    reason="A run has its folder, its home and its temporary folder; clients write them in several ways.",
    evidence=Evidence.FACT,
    uses=_NOWHERE,
)
NAME = TokenKind(
    noun="name",
    reason="The user, the host, the process, the commit and the branch that a run knows of itself. "
    "Another commit may well be why two runs parted.",
    evidence=Evidence.FACT,
    uses=_AS_CAUSE,
)
PATTERN = TokenKind(
    noun="ignored text", reason="The user says so, in the setting ignore_text.", evidence=Evidence.FREE, uses=_NOWHERE
)
CHECKSUM = TokenKind(
    noun="checksum",
    reason="Claude Code writes a checksum of its request into the system prompt, new in every run.",
    evidence=Evidence.FREE,
    patterns=(re.compile(r"(?<=[; ])cch=(?P<token>[0-9a-f]{3,16})(?=;|\s|$)"),),
    uses=_NOWHERE,
)
CHUNK = TokenKind(
    noun="id",
    reason="Codex numbers the pieces of a command's output with six digits that it draws.",
    evidence=Evidence.FREE,
    uses=_IN_RESULTS,
    patterns=(re.compile(r"(?<![A-Za-z])[Cc]hunk[_ ][Ii][Dd]\\?\"?: ?\\?\"?(?P<token>[0-9a-f]{6})(?![0-9A-Za-z])"),),
)
COUNT = TokenKind(
    noun="count",
    reason="Codex says how many tokens an output had; a folder that is written in other words has others.",
    evidence=Evidence.FREE,
    uses=_IN_RESULTS,
    patterns=(re.compile(r"(?<![A-Za-z])[Oo]riginal[_ ]token[_ ]count\\?\"?: ?(?P<token>\d+)(?!\d)"),),
)
TIME = TokenKind(
    noun="time",
    reason="A clock that the run itself read. Any other date or time is text. A prompt may do other things on Sundays.",
    evidence=Evidence.CLOCK,
    patterns=WRITINGS,
    uses=_AS_CAUSE,
)
_MEASURED = r"(?:duration|elapsed|latency|wall[ _]?time|time_(?:total|connect|starttransfer))"
DURATION = TokenKind(
    noun="duration",
    reason="How long something took, measured: a fraction of seconds, or in units that nobody plans in. Whole seconds, "
    "minutes and all that is planned (a timeout, a trip) are amounts, and so is every duration in prose.",
    evidence=Evidence.FREE,
    uses=Uses(matching=Scope.RESULTS, cause=Scope.RESULTS, decision=Scope.COUNTS),
    patterns=(
        re.compile(  # 1.21s, 950 ms: the same program writes both
            r"(?<![\w.,-])(?:\d+[.,]\d+ ?(?:s|secs?|seconds?)"
            r"|\d+(?:[.,]\d+)?(?: ?(?:ms|µs|μs|ns|msecs?|milliseconds?|microseconds?)|us))(?!\w)"
        ),
        re.compile(rf"(?<![A-Za-z])(?:in|took|{_MEASURED})[:=]? (?P<token>\d+ ?s)(?!\w)", re.IGNORECASE),
        re.compile(r"(?<![\w.])(?:\d+h ?)?\d+m ?\d+\.\d+s(?!\w)"),
        re.compile(  # duration: 0.31, "wall_time_seconds":0.000017916
            rf"(?<![A-Za-z])(?:\w{{0,24}}_)?{_MEASURED}(?:[ _]?(?:ms|s|secs?|seconds|ns|us))?[\"']?"
            r"\s{0,2}[:=]\s{0,2}(?P<token>\d+\.\d+(?:e-?\d+)?)(?![\w.])",
            re.IGNORECASE,
        ),
        re.compile(  # duration_ms: 254, elapsedMs=31
            r"(?<![A-Za-z])\w{0,24}(?:[Dd]uration|[Ee]lapsed|[Ll]atency|took|[Tt]ime)_?(?:ms|[Mm]illis|us|ns|Ms|seconds)"
            r"[\"']?\s{0,2}[:=]\s{0,2}(?P<token>\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.])"
        ),
        re.compile(r"(?<![\w:.])\d+:\d\d:\d\d\.\d{3,9}(?![\w:])|(?<=\()\d+:\d\d:\d\d(?=\))"),
    ),
)
PORT = TokenKind(
    noun="port",
    reason="A port of this machine that the system chose: it is of the range it chooses from, and not one of those "
    "in it that people give to databases (5432x) and gRPC servers (5005x).",
    evidence=Evidence.BOUND,
    patterns=(
        re.compile(
            r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(?!5432|5005)"
            r"(?P<token>(?:3[2-9]|[45]\d|6[0-5])\d{3})(?!\d)"
        ),
    ),
    uses=_NOWHERE,
)
PROCESS = TokenKind(
    noun="process id",
    reason="The number that the system gave a process, as tools print it; in a prompt or an address a pid may be a "
    "patient's, or a product's.",
    evidence=Evidence.BOUND,
    patterns=(
        re.compile(r"(?<![A-Za-z?&])(?:pid|PID|pgid|PGID)[\"']?\s?[:=]\s{0,2}(?P<token>\d{3,7})(?![\w.])"),
        re.compile(r"[(\[](?:pid|PID) (?P<token>\d{3,7})(?=[)\]])"),
    ),
    uses=Uses(matching=Scope.RESULTS, cause=Scope.RESULTS),
)
ADDRESS = TokenKind(
    noun="address",
    reason="Where an object stood in memory; the same place may be another object's later. Colours are shorter, and "
    "constants longer.",
    evidence=Evidence.FREE,
    patterns=(re.compile(r"(?<![0-9A-Za-z])0x(?:0{4}[0-9a-fA-F]{12}|[0-9a-fA-F]{9,12})(?![0-9A-Za-z])"),),
    uses=_NOWHERE,
)
TEMPORARY = TokenKind(
    noun="temporary file",
    reason="A name that mkstemp, mkdtemp or mktemp drew.",
    evidence=Evidence.BOUND,
    patterns=(
        re.compile(r"(?<![A-Za-z0-9])tmp[a-z0-9_]{8}(?![A-Za-z0-9_])"),
        re.compile(r"(?<![A-Za-z0-9])tmp\.[A-Za-z0-9]{6,12}(?![A-Za-z0-9])"),
    ),
    is_drawn=_is_temporary,
    uses=_NOWHERE,
)
MKDTEMP = TokenKind(
    noun="temporary file",
    reason="Six letters that mkdtemp drew for a folder directly below the temporary one.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(r"/(?:tmp|var/tmp|T)/(?:[\w.]{1,40}-){1,4}(?P<token>[A-Za-z0-9]{6})(?![\w-]|\.\w)"),),
    is_drawn=_is_of_both_cases,
    uses=_NOWHERE,
)
UUID = TokenKind(
    noun="id",
    reason="A UUID, drawn by the run.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])"),),
    uses=_NOWHERE,
)
ULID = TokenKind(
    noun="id",
    reason="A ULID: a time and what was drawn.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(_EDGE + r"[0-7][0-9A-HJKMNP-TV-Z]{25}" + _END),),
    is_drawn=_has_both,
    uses=_NOWHERE,
)
BEDROCK = TokenKind(
    noun="id",
    reason="Bedrock draws dashes, too: tooluse_kZJMlv-mRJ6eAyJE5GI_7Q.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(r"(?<![A-Za-z0-9])tooluse_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),),
    uses=_NOWHERE,
)
PREFIXED = TokenKind(
    noun="id",
    reason="A drawn id that says what it is an id of: call_8Hf2kLw0aQ, toolu_01A09q90qw90, chatcmpl-9x2Lq8.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,16}(?:[_-][a-z]{2,12})?[_-][A-Za-z0-9]{8,64}(?![A-Za-z0-9])"),),
    is_drawn=_is_prefixed,
    uses=_NOWHERE,
)
LABELLED = TokenKind(
    noun="id",
    reason="A short id that programs give their own parts: agentId: a6e4b1c. What people number (orders, invoices, "
    "customers) is not among them.",
    evidence=Evidence.BOUND,
    patterns=(
        re.compile(
            rf"(?<![A-Za-z])(?:[A-Za-z]{{0,12}}[_-]?)?(?:{_PROGRAM_WORD})[ _-]?id[\"'`]?\s{{0,2}}[:=]?\s{{0,2}}[\"'`]?"
            r"(?P<token>[0-9a-z]{6,64})(?![A-Za-z0-9_])",
            re.IGNORECASE,
        ),
    ),
    is_drawn=_is_short_id,
    uses=_NOWHERE,
)
HEXADECIMAL = TokenKind(
    noun="id",
    reason="A long hexadecimal number, drawn. One that is said to be a hash stands for contents, which count.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(_EDGE + r"(?:[0-9a-f]{12,64}|[0-9A-F]{12,64})" + _END),),
    is_drawn=_is_hexadecimal,
    uses=_NOWHERE,
)
BASE64 = TokenKind(
    noun="id",
    reason="Up to 64 letters and digits, drawn. What is longer is data.",
    evidence=Evidence.BOUND,
    patterns=(re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9_-]{20,64}={0,2}(?![A-Za-z0-9+/_=-])"),),
    is_drawn=_is_long_id,
    uses=_NOWHERE,
)
_OF_THE_CALL = (
    r"etag|(?:\w{0,16}_)?cursor|(?:next_?)?page_?token|continuation_?token|nonce|traceparent|idempotency_?key"
    r"|(?:x[_-]?)?(?:request|trace|span|correlation|transaction_trace)[_-]?id"
)
_WHEN = r"(?:fetched|retrieved|generated|queried|cached|checked|served|refreshed)_?at|timestamp|server_?time|as_?of"
_NAMED = r"(?<![A-Za-z0-9_])\\?[\"']?(?:{})\\?[\"']?\s{{0,2}}[:=]\s{{0,2}}"
OF_THE_CALL = TokenKind(
    noun="value of that very call",
    reason="What a tool says of the call itself, by the name of the field: its trace, when it was asked, how long it "
    "took, where the next page begins, the last digits of a score. A replay is not to take one for the other.",
    evidence=Evidence.FREE,
    uses=Uses(matching=Scope.COUNTS, output=Scope.COUNTS, cause=Scope.RESULTS),
    patterns=(
        re.compile(_NAMED.format(_OF_THE_CALL) + r"\\?[\"']?(?P<token>[\w.:/+=-]{1,200})", re.IGNORECASE),
        re.compile(_NAMED.format(_WHEN) + r"\\?[\"']?(?P<token>\d[\w.:+ -]{3,40})", re.IGNORECASE),
        re.compile(
            _NAMED.format(r"(?:\w{0,16}_)?(?:took|elapsed|latency)(?:_\w{1,12})?")
            + r"(?P<token>\d+(?:\.\d+)?)(?![\w.])",
            re.IGNORECASE,
        ),
        re.compile(
            _NAMED.format(r"(?:\w{0,16}_)?(?:score|similarity|relevance|distance)") + r"-?\d\.\d(?P<token>\d{1,17})",
            re.IGNORECASE,
        ),
    ),
)

KINDS = (
    CHECKSUM,
    CHUNK,
    COUNT,
    TIME,
    UUID,
    ULID,
    TEMPORARY,
    MKDTEMP,
    BEDROCK,
    PREFIXED,
    LABELLED,
    HEXADECIMAL,
    BASE64,
    PORT,
    PROCESS,
    ADDRESS,
    DURATION,
)
"""Those that are known by how they are written, in the order in which they are tried."""
ALL_KINDS = (FOLDER, NAME, PATTERN, *KINDS, OF_THE_CALL)

_HASH = re.compile(
    r"(?:sha-?\d*|md5|hash|digest|checksum|etag|integrity|fingerprint|thumbprint|commit|blob|tree|parent|revision|rev"
    r"|HEAD(?: is now)? at)\W{0,4}(?:W/\")?$",
    re.IGNORECASE,
)
_SUM_LENGTHS = (32, 56, 64, 96, 128)
_SUMMED_FILE = re.compile(r"  \S| \*\S")
"""As md5sum and sha256sum write it behind the sum."""
_BEGINS_AS_HASH = re.compile(r"(?:sha-?\d+|md5)[_-]", re.IGNORECASE)
_OF_PEOPLE = re.compile(r"(?<![A-Za-z])([A-Za-z]{1,16})[_-]$")


def stands_for_something(text: str, start: int, end: int) -> bool:
    """Whether the id that stands there is said to be a hash of contents, or of what people number."""
    if end - start in _SUM_LENGTHS and _SUMMED_FILE.match(text, end):
        return True
    if _HASH.search(text, max(0, start - 24), start) is not None or _BEGINS_AS_HASH.match(text, start):
        return True
    prefix = _OF_PEOPLE.search(text, max(0, start - 18), start)
    return prefix is not None and prefix[1].lower() in _PEOPLES_WORDS


def is_drawn_id(text: str) -> bool:
    """Whether the whole text is an id as programs draw them."""
    for kind in KINDS:
        for pattern in kind.patterns if kind.noun == "id" else ():
            if (found := pattern.fullmatch(text)) is not None:
                token = found["token"] if "token" in pattern.groupindex else text
                if kind.is_drawn is None or kind.is_drawn(token):
                    return True
    return False
