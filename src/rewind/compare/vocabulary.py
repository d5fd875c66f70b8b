"""Words that say how something is said, not what: stop words, number words, units, negation; by language.

Compact on purpose: a language that is not here is still compared by its numbers, codes and shared words.
"""

import re
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(_listed(text))


def _listed(text: str) -> list[str]:
    return text.split()


def _numbered(text: str, start: int = 0, step: int = 1) -> dict[str, float]:
    return {name: float(start + step * at) for at, name in enumerate(_listed(text))}


STOP_WORDS = {
    "en": _words(
        "a an the this that these those it its i me my we us our you your he she they them their his her of in on "
        "at to "
        "for from by with about as into over under and or but so if then than when while which who whom whose "
        "what where "
        "why how is are was were be been being am do does did done have has had having will would shall should "
        "can could "
        "may might must not no nor just only also too very more most much many some any all both each other "
        "another such "
        "there here out up down off again still yet now once per via own same because since until though although "
        "however "
        "i'm i've i'll i'd you're you've you'll we're we've we'll it's that's there's here's they're he's she's "
        "let let's"
    ),
    "de": _words(
        "der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren sein wird "
        "werden wurde "
        "hat haben hatte nicht kein keine ich du er sie es wir ihr ihre ihren ihrer ihnen mein dein unser uns "
        "mich mir dir "
        "sich auf in im an am zu zum zur von vom mit bei nach aus für über unter um als auch nur noch schon so "
        "wie was wer "
        "wo wenn weil dass da hier bitte kann können innerhalb bis durch diese dieser dieses"
    ),
    "fr": _words(
        "le la les un une des du de d l et ou mais est sont était être a ont avoir ne pas n je tu il elle nous "
        "vous ils "
        "elles mon ma mes votre vos notre nos son sa ses leur leurs ce cet cette ces qui que quoi dont où à au "
        "aux en dans "
        "par pour sur sous avec sans plus très aussi si comme se s c j y peut pouvez été"
    ),
    "es": _words(
        "el la los las un una unos unas de del y o pero es son fue era ser está están ha han haber no yo tú él ella "
        "nosotros usted ustedes ellos mi su sus tu nuestro este esta estos estas ese esa que qué quien cual donde "
        "a al en "
        "por para con sin sobre más muy también si como se lo le les me te nos puede ya"
    ),
    "pt": _words(
        "o a os as um uma uns umas de do da dos das e ou mas é são foi era ser está estão tem têm não eu tu ele "
        "ela nós "
        "você vocês eles meu minha seu sua seus suas este esta esse essa que quem qual onde ao à em no na nos nas "
        "por para "
        "com sem sobre mais muito também se como lhe pode já"
    ),
    "it": _words(
        "il lo la i gli le un uno una di del della dei delle e o ma è sono era essere ha hanno avere non io tu "
        "lui lei noi "
        "voi loro mio tuo suo sua nostro questo questa questi che chi quale dove a al alla in nel nella da dal "
        "per con "
        "senza su più molto anche se come si ci può già"
    ),
    "nl": _words(
        "de het een en of maar is zijn was waren worden wordt heeft hebben niet geen ik jij je u hij zij ze wij "
        "we jullie "
        "mijn jouw uw ons onze hun dit dat deze die wat wie waar op in aan te van voor met bij naar uit over om "
        "als ook "
        "nog al zo hoe kan kunnen er"
    ),
}
"""Of each language, the commonest; they tell the language, too."""

POLITE = _words(
    "please thanks thank sorry apologies apologize apologise unfortunately certainly sure course happy glad great "
    "good "
    "noted understood hello hi hey dear okay ok well let know feel free hesitate reach contact question questions "
    "further help "
    "helping assist assistance anything else moment look looking want wish need would like hope wonderful perfect "
    "absolutely done set ready complete completed finished finish here's according based note kindly however regards "
    "appreciate patience understand inconvenience confirm confirmed successfully currently already get got see take "
    "bitte danke leider gerne merci désolé malheureusement gracias siento lamentablemente obrigado obrigada desculpe "
    "infelizmente grazie purtroppo"
)
"""Courtesy and connecting words: one run says them, the next does not."""

_UNITS: dict[str, tuple[str, float]] = {}
for _base, _factor, _names in (
    ("s", 1, "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondo secondi"),
    ("s", 60, "min mins minute minutes minuten minuto minutos minuti"),
    ("s", 3600, "h hr hrs hour hours stunde stunden heure heures hora horas ora ore"),
    ("s", 86400, "d day days tag tage tagen jour jours día días dia dias giorno giorni"),
    ("s", 604800, "week weeks wk wks woche wochen semaine semaines semana semanas settimana settimane"),
    ("s", 0.001, "ms millisecond milliseconds"),
    ("month", 1, "month months mo monat monate monaten mois mes meses mese mesi"),
    ("month", 12, "year years yr yrs jahr jahre jahren ans année années año años ano anos anno anni"),
    ("%", 1, "% percent pct prozent pourcent pourcents porcentaje"),
    ("usd", 1, "$ usd dollar dollars us$"),
    ("usd", 0.01, "cent cents"),
    ("eur", 1, "€ eur euro euros"),
    ("gbp", 1, "£ gbp pound pounds sterling quid"),
    ("jpy", 1, "¥ jpy yen"),
    ("inr", 1, "₹ inr rupee rupees rs"),
    ("chf", 1, "chf"),
    ("b", 1, "b byte bytes"),
    ("b", 1e3, "kb kilobyte kilobytes"),
    ("b", 1e6, "mb megabyte megabytes"),
    ("b", 1e9, "gb gigabyte gigabytes"),
    ("b", 1e12, "tb terabyte terabytes"),
    ("g", 1e-3, "mg milligram milligrams"),
    ("g", 1, "g gram grams"),
    ("g", 1e3, "kg kilogram kilograms kilo kilos"),
    ("lb", 1, "lb lbs"),
    ("m", 1e-3, "mm millimeter millimeters"),
    ("m", 1e-2, "cm centimeter centimeters centimetres"),
    ("m", 1, "m meter meters metre metres"),
    ("m", 1e3, "km kilometer kilometers kilometre kilometres"),
    ("mi", 1, "mi mile miles"),
    ("ml", 1, "ml milliliter milliliters millilitres"),
    ("ml", 1e3, "l liter liters litre litres"),
    ("°c", 1, "°c celsius"),
    ("°f", 1, "°f fahrenheit"),
):
    for _name in _names.split():
        _UNITS[_name] = (_base, _factor)
UNITS = _UNITS
"""What a number counts: the unit it is compared in, and how many of those it is."""
WORKING_DAYS = _words(
    "business working weekday work werktage werktagen arbeitstage arbeitstagen ouvrés ouvrables hábiles úteis"
)
MONEY = frozenset({"usd", "eur", "gbp", "jpy", "inr", "chf"})
SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "million": 1e6,
    "millionen": 1e6,
    "millions": 1e6,
    "bn": 1e9,
    "b": 1e9,
    "billion": 1e9,
}

_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: dict[str, dict[str, float]] = {
    "en": _numbered(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen "
        "eighteen nineteen"
    )
    | _numbered(_TENS, 20, 10)
    | {"dozen": 12.0, "twice": 2.0},
    "de": _numbered("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf")
    | _numbered("zwanzig dreißig vierzig fünfzig", 20, 10),
    "fr": _numbered("deux trois quatre cinq six sept huit neuf dix onze douze", 2)
    | _numbered("vingt trente quarante cinquante", 20, 10),
    "es": _numbered("dos tres cuatro cinco seis siete ocho nueve diez once doce", 2)
    | _numbered("veinte treinta cuarenta cincuenta", 20, 10),
    "pt": _numbered("dois três quatro cinco seis sete oito nove dez onze doze", 2)
    | _numbered("vinte trinta quarenta cinquenta", 20, 10),
    "it": _numbered("due tre quattro cinque sei sette otto nove dieci undici dodici", 2)
    | _numbered("venti trenta quaranta cinquanta", 20, 10),
}
_ENGLISH = _words("once due dos null elf sei cent tre") | NUMBER_WORDS["en"].keys()
NUMBER_WORDS[""] = NUMBER_WORDS["en"] | {
    word: value for words in list(NUMBER_WORDS.values()) for word, value in words.items() if word not in _ENGLISH
}
"""Where the language is not known: all that are no English words."""
TENS = _words(_TENS)

MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "january jan januar janvier enero janeiro gennaio",
        "february feb februar février fevrier febrero fevereiro febbraio",
        "march mar märz mars marzo março",
        "april apr avril abril aprile",
        "may mai mayo maio maggio",
        "june jun juni juin junio junho giugno",
        "july jul juli juillet julio julho luglio",
        "august aug août agosto",
        "september sep sept septembre septiembre setembro settembre",
        "october oct oktober octobre octubre outubro ottobre",
        "november nov novembre noviembre novembro",
        "december dec dezember décembre diciembre dezembro dicembre",
    ),
    1,
):
    for _name in _names.split():
        MONTHS[_name] = _number
DAYS: dict[str, str] = {}
for _canonical, _names in (
    ("mon", "monday mon montag lundi lunes lunedì"),
    ("tue", "tuesday tue tues dienstag mardi martes martedì"),
    ("wed", "wednesday wed mittwoch mercredi miércoles mercoledì"),
    ("thu", "thursday thu thurs donnerstag jeudi jueves giovedì"),
    ("fri", "friday fri freitag vendredi viernes venerdì"),
    ("sat", "saturday samstag samedi sábado sabato"),
    ("sun", "sunday sonntag dimanche domingo domenica"),
    ("today", "today tonight heute hoy hoje oggi"),
    ("tomorrow", "tomorrow morgen demain mañana amanhã domani"),
    ("yesterday", "yesterday gestern hier ayer ontem ieri"),
):
    for _name in _names.split():
        DAYS[_name] = _canonical
AMBIGUOUS_DAYS = _words("mon wed fri hier morgen mars")
"""Words of other languages, or of none: days only where a capital says so, or not at all."""

# ── yes and no ───────────────────────────────────────────────────────────────────────────────────────────────

NEGATIONS = {
    "en": _words("not no never avoid refrain nobody nothing neither nor without cannot cant unable nope"),
    "de": _words("nicht kein keine keinen keinem keiner keines nie niemals ohne nein"),
    "fr": _words("pas jamais aucun aucune sans non impossible"),
    "es": _words("no ningún ninguna ninguno nunca sin tampoco"),
    "pt": _words("não nunca nenhum nenhuma sem tampouco"),
    "it": _words("non no nessun nessuna nessuno mai senza"),
    "nl": _words("niet geen nooit zonder nee"),
}
CLAUSE_ENDS = _words(
    ", but however because since so although though while if unless instead and which until whereas as where when "
    "aber weil denn und mais car parce et pero porque y mas e ma perché maar omdat en"
)
NEGATIVE_FORMS = {
    "denied": "approve", "deny": "approve", "denies": "approve", "denying": "approve", "denial": "approve",
    "rejected": "approve", "reject": "approve", "rejects": "approve", "rejection": "approve",
    "declined": "approve", "decline": "approve", "declines": "approve", "refused": "approve", "refuse": "approve",
    "dismissed": "approve",
    "disallowed": "approve", "prohibited": "approve", "forbidden": "approve", "abgelehnt": "approve",
    "refusé": "approve", "refusée": "approve", "rechazado": "approve", "rechazada": "approve", "recusado": "approve",
    "broken": "succeed",
    "failed": "succeed", "fails": "succeed", "fail": "succeed", "failing": "succeed", "failure": "succeed",
    "unsuccessful": "succeed", "unsuccessfully": "succeed", "fehlgeschlagen": "succeed",
    "disqualified": "eligib",
    "ineligible": "eligib", "impossible": "possib", "unavailable": "availa", "invalid": "valid", "incorrect": "correc",
    "unsafe": "safe", "false": "true", "wrong": "correc", "disabled": "enable", "inactive": "active",
    "insufficient": "suffic", "unhealthy": "health", "unauthorized": "approve", "unauthorised": "approve",
    "impermissible": "approve", "uncovered": "cover", "excluded": "includ", "excludes": "includ", "lacks": "have",
    "unlikely": "likel", "unsupported": "suppor", "unreachable": "reacha", "unknown": "known", "unlawful": "lawful",
    "illegal": "legal", "noncompliant": "compli", "unmöglich": "possib", "ungültig": "valid",
}  # fmt: skip
"""Words that say no to what the second one says."""
POSITIVE_FORMS = {
    "approved": "approve", "approve": "approve", "approves": "approve", "approval": "approve", "accepted": "approve",
    "accept": "approve", "accepts": "approve", "granted": "approve", "grant": "approve", "allowed": "approve",
    "permitted": "approve", "authorized": "approve", "authorised": "approve", "genehmigt": "approve",
    "approuvé": "approve", "approuvée": "approve", "aprobado": "approve", "aprobada": "approve", "aprovado": "approve",
    "succeeded": "succeed", "succeeds": "succeed", "succeed": "succeed", "successful": "succeed",
    "successfully": "succeed", "success": "succeed", "passed": "succeed", "passes": "succeed", "pass": "succeed",
    "passing": "succeed", "erfolgreich": "succeed",
    "eligible": "eligib", "eligibility": "eligib", "qualify": "eligib", "qualifies": "eligib", "qualified": "eligib",
    "entitled": "eligib",
}  # fmt: skip
OPPOSITES: dict[str, str] = {}
for _pair in _listed(
    "up/down higher/lower highest/lowest high/low above/below open/closed opened/closed before/after enable/disable "
    "enabled/disabled buy/sell bought/sold left/right more/less most/least maximum/minimum positive/negative "
    "always/never first/last early/late earlier/later guilty/innocent safe/dangerous malignant/benign allow/block "
    "allowed/blocked include/exclude included/excluded start/stop started/stopped add/remove added/removed "
    "online/offline public/private internal/external full/partial fully/partially mandatory/optional "
    "required/optional "
    "profit/loss gain/loss faster/slower better/worse best/worst debit/credit refundable/nonrefundable free/paid "
    "inbound/outbound healthy/sick keep/delete hot/cold acute/chronic arrive/depart arrives/departs "
    "win/lose won/lost accelerate/slow expand/shrink strengthen/weaken upgrade/downgrade import/export "
    "encrypt/decrypt lock/unlock locked/unlocked connect/disconnect connected/disconnected valid/expired "
    "active/expired "
    "upstream/downstream ascending/descending plaintiff/defendant landlord/tenant buyer/seller lender/borrower "
    "supply/demand overweight/underweight surplus/deficit same/different"
):
    _one, _other = _pair.split("/")
    OPPOSITES[_one] = OPPOSITES.get(_one, "") + f" {_other}"
    OPPOSITES[_other] = OPPOSITES.get(_other, "") + f" {_one}"
_RISE = "rise rises rose risen rising increase increases increased grow grows grew gain gains gained climbed jumped"
_FALL = "fall falls fell fallen falling decrease decreases decreased drop drops dropped decline declined lost shrank"
OPPOSITES |= dict.fromkeys(_listed(_RISE), _FALL) | dict.fromkeys(_listed(_FALL), _RISE)

# ── stems and language ───────────────────────────────────────────────────────────────────────────────────────

ALL_STOP_WORDS = frozenset().union(*STOP_WORDS.values())
_SUFFIXES = (
    "ational", "ization", "isation", "ations", "ation", "ments", "ment", "ingly", "tions", "tion", "edly", "ings",
    "ing", "ies", "ied", "ely", "ed", "es", "ly", "s", "e", "y",
)  # fmt: skip
_STEM = 6


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The beginning that the forms of a word share: light, and the same for every language."""
    if len(word) <= (3 if word.isascii() else 4):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:_STEM]


_SCRIPTS = (
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
    ("thai", re.compile(r"[\u0e00-\u0e7f]")),
)


def language_of(words: list[str], text: str) -> str:
    """By script, then by stop words; empty where it cannot be told."""
    if not text.isascii():
        counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
        if counts["ja"] and counts["zh"]:
            counts["ja"] += counts.pop("zh")
        name, most = max(counts.items(), key=lambda one: one[1])
        if most * 3 > sum(map(str.isalpha, text)):
            return name
    known = set(words)
    if len(known) < 4:
        return ""
    scores = sorted(((len(stop & known), name) for name, stop in STOP_WORDS.items()), reverse=True)
    (best, name), (second, _) = scores[0], scores[1]
    return name if best >= 2 and best >= 0.2 * len(known) and best > 1.5 * second else ""
