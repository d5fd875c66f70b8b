"""Looks through a recording for secrets that nobody named, and says where they stand without saying what they are.

Unknown secrets are known by the forms of well-known keys, and by being assigned to a name like ``password``. What is
found is reported, and a person decides. It is meant for decoded texts; in raw JSON the backslash before a quote hides
where a key ends. A fixed mark that every key of a kind has is looked for first, which costs next to nothing; only texts
with such a mark are matched.

The texts are strangers', so no expression may cost more than a text is long: what must follow a repeat can never be
part of it, or the repeat is bounded, and where a repeat may run on, its match can only begin where a word begins.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from itertools import islice

from rewind.credentials import is_dummy
from rewind.dataclass import dataclass
from rewind.model.http import Headers, header
from rewind.redaction.aws_frames import lines_read
from rewind.redaction.body_texts import TextInBody, document_texts, is_one_document, paths_of, texts_of
from rewind.redaction.names import option_kind
from rewind.redaction.recording_texts import TextPlace
from rewind.redaction.values import PLACEHOLDER, is_location, looks_random
from rewind.wire.encoding import decode_as_far_as_possible
from rewind.wire.eventstream import begins_with_a_frame
from rewind.wire.growing_json import places_shared

_MOST_HITS = 500
_DEEPEST = 3
"""How many assignments inside each other's values are looked at: ``token: api_key=…``."""
_LONGEST_NAME = 100
LEAST_ENTROPY = 3.0
"""Bits a character: words have less, keys have more."""


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One kind of key."""

    name: str
    marks: tuple[str, ...]
    """One of these stands in every text that has such a key."""
    expression: re.Pattern[str]
    """Its group ``value``, or all of it, is the secret."""
    written: str
    """The expression as a person would type it, to find just the key."""
    fixed: bool = True
    """Whether the mark is how the key begins, so that it may be shown."""


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """Something that looks like a secret."""

    kind: str
    start: int
    end: int
    shown: str
    """The beginning that every key of the kind has, or the name it was assigned to: never a part of the secret."""
    expression: str = ""
    """Finds every key of the kind; empty where only its surroundings tell."""


def _kind(name: str, marks: str, expression: str, *, fixed: bool = True) -> SecretKind:
    # Not in the middle of a word: "task-" is no "sk-", and a digest may hold anything.
    alone = "" if "(?P<value>" in expression else expression
    return SecretKind(name, tuple(marks.split()), re.compile(rf"(?<![A-Za-z0-9_]){expression}"), alone, fixed)


KINDS = (
    _kind("Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _kind("OpenRouter key", "sk-or-", r"sk-or-[A-Za-z0-9-]{20,}"),
    _kind("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}"),
    _kind("API key (sk-…)", "sk-", r"sk-(?:[a-z]{2,10}-)?(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}+(?![A-Za-z0-9_-])"),
    _kind("Google API key", "AIza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _kind("Google OAuth token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    _kind("Google client secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _kind("AWS access key id", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _kind("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _kind("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _kind("GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _kind("Slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe-", r"xox[abprse]-[A-Za-z0-9-]{10,}"),
    _kind("Slack token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{10,}"),
    _kind("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    _kind("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _kind("Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    _kind(
        "JSON web token",
        "eyJ",
        # Only where such a run begins: each start would read on to the end of it.
        r"(?<!-)eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}",
    ),
    _kind(
        "private key",
        "PRIVATE",
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){16,16000}+-----END",
    ),
    _kind("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _kind("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}+(?![A-Za-z0-9_])"),
    _kind("Azure storage key", "AccountKey=", r"AccountKey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})"),
    _kind("Azure signature", "sig=", r"sig=(?P<value>[A-Za-z0-9%+/]{40,}(?:%3[dD]|=)?)"),
    _kind("npm token", "npm_", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _kind("PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _kind("Twilio key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _kind("SendGrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _kind("Telegram bot token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", fixed=False),
    _kind("Discord bot token", ".", r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])", fixed=False),
    _kind("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _kind("xAI key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _kind("Perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{32,}"),
    _kind("Replicate token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _kind("NVIDIA key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,}"),
    _kind("Tavily key", "tvly-", r"tvly-(?:[a-z]+-)?[A-Za-z0-9]{20,}"),
    _kind("LangSmith key", "lsv2_", r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{8,}"),
    _kind("Pinecone key", "pcsk_", r"pcsk_[A-Za-z0-9_]{30,}"),
    _kind("Databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _kind("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[0-9a-f]{64}"),
    _kind("Notion token", "ntn_", r"ntn_[A-Za-z0-9]{30,}"),
    _kind("Linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
    _kind("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _kind("Mailgun key", "key-", r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _kind("HashiCorp Vault token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
    _kind("Docker token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    _kind("Firebase key", "AAAA", r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{120,}"),
)
"""Each kind by the form that its issuer publishes, narrowest first."""
_MARKS = [(mark, kind) for kind in KINDS for mark in kind.marks]

_WORDS = re.compile(
    r"(?P<name>(?:api|access|secret|private|auth|account|master|encryption|signing|subscription|service|client)"
    r"[ _.-]?key"
    r"|apikey|token|secret|passw(?:or)?d|passphrase|passwort|\bpwd|\bpass|credential)s?"
    # "is" as people write it, an assignment as programs do, "&key=" of a URL, and quotes as JSON in JSON has them.
    r"(?P<rest>[A-Za-z0-9_]{0,24})[\"'`\\]{0,4}(?:\s{0,4}(?:=>|:=|={1,3}|:)\s{0,4}|\s{1,4}is:?\s{1,4})"
    r"(?:str\s{0,4}=\s{0,4})?[fbru]?[\"'`\\]{0,4}(?P<value>[^\s\"'`\\,;<>|&]{8,400})",
    re.IGNORECASE,
)
_WORD_MARKS = ("key", "token", "secret", "pass", "pwd", "credential")
_OTHER_NAMES = re.compile(
    r"_?(?:url|uri|path|file|dir|name|type|user|id|ids|host|header|env|count|limit|usage|length|size|endpoint|expir\w*)$",
    re.IGNORECASE,
)
"""``token_url`` and ``secret_name`` are not the secret."""
_CODE = re.compile(
    r"[A-Za-z_][A-Za-z_.]*[(\[.]|[A-Za-z_][A-Za-z0-9_.]*[(\[]|[A-Za-z_]+$|[$%{(\[]|\*+|.*(?:\.\.\.|…|\*\*\*)"
)
"""``os.environ[…]``, ``config.key``, ``getpass()``, ``${KEY}``, ``***``: where a secret comes from, not the secret."""
_BEARER = re.compile(
    r"(?P<name>authorization[\"'`\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'`\\]{0,4}(?:bearer|basic|token)|bearer)\s{1,4}"
    r"(?P<value>[A-Za-z0-9._~+/=-]{16,4000})",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(
    r"(?<![A-Za-z0-9+.-])(?P<name>[A-Za-z][A-Za-z0-9+.-]{1,30}://)[^\s/?#:@\"'`<>]{0,100}:(?P<value>[^\s/?#@\"'`<>{}$]{3,200})@[A-Za-z0-9.\[-]"
)


def secret_matches(text: str, name: str = "") -> list[SecretMatch]:
    """What in a decoded text looks like a secret, in order; ``name`` is that of the field that holds it."""
    found: list[SecretMatch] = []
    for kind in dict.fromkeys([kind for mark, kind in _MARKS if mark in text]):
        _add(found, _of_kind(kind, text))
    if "://" in text:
        _add(found, _assigned("password in a URL", _URL_PASSWORD, text))
    lowered = text.lower()
    if "bearer" in lowered or "authorization" in lowered:
        _add(found, _assigned("credential in a header", _BEARER, text))
    if any(mark in lowered for mark in _WORD_MARKS):
        _add(found, _assigned("value of a secret's name", _WORDS, text))
    if not found and name and _is_secret_field(name, text):
        found.append(SecretMatch("value of a secret's name", 0, len(text), name[-_LONGEST_NAME:]))
    return sorted(found, key=lambda match: match.start)


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def _add(found: list[SecretMatch], more: Iterator[SecretMatch]) -> None:
    """What a narrower kind has found is not reported again; of a text that is full of keys, some are enough."""
    known = sorted((match.start, match.end) for match in found)
    for one in islice(more, _MOST_HITS):
        after = bisect_left(known, (one.end, 0))
        # None of the known overlaps another, so the last that begins before the end is the only one to ask.
        if not after or known[after - 1][1] <= one.start:
            found.append(one)


def _of_kind(kind: SecretKind, text: str) -> Iterator[SecretMatch]:
    for match in kind.expression.finditer(text):
        group = "value" if kind.expression.groupindex else 0
        value = match[group]
        if not _is_stand_in(value):
            begins = (mark for mark in kind.marks if kind.fixed and value.startswith(mark))
            yield SecretMatch(kind.name, *match.span(group), next(begins, ""), kind.written)


def _assigned(kind: str, expression: re.Pattern[str], text: str) -> Iterator[SecretMatch]:
    at = reached = depth = 0
    while match := expression.search(text, at):
        value = match["value"].rstrip(".:!?)]}")
        start = match.start("value")
        # One assignment may be the value of another, "token: api_key=…"; but not for ever.
        depth = depth + 1 if start < reached else 0
        reached = max(reached, match.end("value"))
        at = start if depth < _DEEPEST else reached
        if expression is _WORDS:
            is_secret = not _OTHER_NAMES.search(match["rest"]) and _is_secret(value)
        else:
            is_secret = not _is_stand_in(value) and not _CODE.match(value)
            is_secret = is_secret and (expression is _URL_PASSWORD or _is_secret(value))
        if is_secret:
            at = max(at, start + len(value))
            yield SecretMatch(kind, start, at, match["name"])


def _is_secret_field(name: str, value: str) -> bool:
    """A JSON member such as ``"password": "…"``; a text of several words is not a secret."""
    if option_kind(name[-_LONGEST_NAME:]) != "plain" or not 8 <= len(value) <= 400 or any(map(str.isspace, value)):
        return False
    return not _OTHER_NAMES.search(name[-_LONGEST_NAME:]) and _is_secret(value)


def _is_secret(value: str) -> bool:
    if len(value) < 8 or _is_stand_in(value) or _CODE.match(value) or is_location(value):
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) and not looks_random(value):
        return False
    return entropy(value) > LEAST_ENTROPY


def _is_stand_in(value: str) -> bool:
    """Our own placeholder, or what people write where a key is to be put."""
    if PLACEHOLDER.search(value) or is_dummy(value):
        return True
    return len(set(value)) < 6 or "EXAMPLE" in value or "xxxx" in value.lower()


# ── looking through a recording ──────────────────────────────────────────────────────────────────────────────────

SHORTEST_TEXT = 8
_MOST_KNOWN = 1_000_000
_LONG_BODY = 2048
"""Bytes of a document that is remembered, since a later one may begin like it."""
_BETWEEN_MARKS = 512
_KEPT = 8
_ALIKE = 0.5
"""The share of a document that a later one repeats from which on it is the same conversation."""
_KEPT_BYTES = 8 * 1024 * 1024
"""Documents that are remembered; the last one always is."""

_Found = list[tuple[TextInBody, SecretMatch]]


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A document, and what was found in it."""

    plain: bytes
    found: _Found
    ends: list[int]
    """Places just behind the string of a member: whatever follows, what stands before is read in the same way."""
    counts: list[int]
    """How much was found before each of them."""

    def shared(self, plain: bytes) -> int:
        """How many of the ends stand within what both begin with."""
        return places_shared(self.plain, plain, len(self.ends), lambda count: self.ends[count - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """Something that looks like a secret, and where it was first met."""

    kind: str
    step: int | None
    """``None`` outside of steps: the command line, what was printed."""
    where: str
    """``request body``, ``response headers``, ``command line``, ``stdout`` …"""
    path: str
    """Inside a body: ``messages[2].content``."""
    excerpt: str
    """How it begins, where that is the same for every key of its kind, and how long it is."""
    expression: str = ""
    """A regular expression that finds every key of this kind; empty where only its surroundings tell."""
    places: int = 1
    """How often it stands in the recording, history repeated by later requests included."""


@dataclass(slots=True)
class Scan:
    """Collects findings; texts that agents repeat in every request are looked at once."""

    _found: dict[str, SecretFinding] = field(default_factory=dict)
    """By the secret; it stays in here."""
    _places: Counter[str] = field(default_factory=Counter)
    _known: dict[int, list[SecretMatch]] = field(default_factory=dict)
    _scanned: list[_Scanned] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Scan: {len(self._found)} findings>"

    def text(
        self, text: str, where: str, *, step: int | None = None, name: str = "", path: str = "", only_new: bool = False
    ) -> None:
        """A text that stands for itself."""
        for match in self._matches(text, name):
            secret = text[match.start : match.end]
            if not (only_new and secret in self._found):
                self._add(secret, match, step, where, path)

    def placed(self, text: str, place: TextPlace, where: str, *, step: int | None = None) -> None:
        """A text of the model; a header is read as it is written, with its name."""
        if place.is_header:
            self.text(f"{place.name}: {text}", f"{where} headers", step=step, path=place.path)
        else:
            self.text(text, where, step=step, name=place.name, path=place.path, only_new=place.repeats_a_body)

    def body(self, data: bytes, headers: Headers, where: str, *, step: int | None = None) -> None:
        """A body as it is stored."""
        plain, _ = decode_as_far_as_possible(data, header(headers, "content-encoding"))
        media = (header(headers, "content-type") or "").lower()
        if begins_with_a_frame(plain):
            plain, media = lines_read(plain), "application/x-ndjson"
        if len(plain) >= _LONG_BODY and is_one_document(plain, media):
            found = self._in_document(plain)
        else:
            found = []
            for text in texts_of(plain, media, shortest=SHORTEST_TEXT):
                found += self._in_text(text)
        new = [text for text, match in found if text.text[match.start : match.end] not in self._found]
        paths = paths_of(plain, new)
        for text, match in found:
            secret = text.text[match.start : match.end]
            self._add(secret, match, step, where, paths.get(text.offset, ""))

    def _in_document(self, plain: bytes) -> _Found:
        """What is in a JSON document; not looked for again in the beginning that it shares with an earlier one."""
        known, shared = None, 0
        for one in self._scanned:
            if (same := one.shared(plain)) > shared:
                known, shared = one, same
            if known is not None and shared == len(known.ends):
                break
        found: _Found = []
        ends, counts = [0], [0]
        if known is not None:
            ends, counts = known.ends[:shared], known.counts[:shared]
            found = known.found[: counts[-1]]
        for text in document_texts(plain, ends[-1], len(plain), SHORTEST_TEXT):
            found += self._in_text(text)
            # Only a string with a name ends what is matched at once: behind another, a colon may follow.
            if text.name and (end := text.offset + len(text.pieces[0].raw) + 1) >= ends[-1] + _BETWEEN_MARKS:
                ends.append(end)
                counts.append(len(found))
        self._remember(
            _Scanned(plain, found, ends, counts),
            known if known is not None and shared > _ALIKE * len(known.ends) else None,
        )
        return found

    def _remember(self, scanned: _Scanned, gone_on_from: _Scanned | None) -> None:
        kept, size = [scanned], len(scanned.plain)
        for one in self._scanned:
            if one is not gone_on_from:
                size += len(one.plain)
                if size <= _KEPT_BYTES and len(kept) < _KEPT:
                    kept.append(one)
        self._scanned = kept

    def _in_text(self, text: TextInBody) -> _Found:
        if len(text.text) < SHORTEST_TEXT or text.number:
            return []
        return [(text, match) for match in self._matches(text.text, text.name)]

    @property
    def findings(self) -> tuple[SecretFinding, ...]:
        """In the order in which they were met."""
        return tuple(replace(finding, places=self._places[secret]) for secret, finding in self._found.items())

    def _matches(self, text: str, name: str) -> Iterable[SecretMatch]:
        if len(text) < SHORTEST_TEXT:
            return ()
        key = hash((text, name))
        found = self._known.get(key)
        if found is None:
            found = secret_matches(text, name)
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = found
        return found

    def _add(self, secret: str, match: SecretMatch, step: int | None, where: str, path: str) -> None:
        self._places[secret] += 1
        if secret in self._found:
            return
        size = f"({len(secret)} characters)"
        self._found[secret] = SecretFinding(
            kind=match.kind,
            step=step,
            where=where,
            path=path,
            excerpt=f"{match.shown}… {size}" if match.shown else size,
            expression=match.expression,
        )
