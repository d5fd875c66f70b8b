"""Which variables hold credentials, by their names; and which values are none, whatever the variable is called.

One table for the recorder and for the trace writer, which stands on the standard library alone. A name counts by its
whole words: ``DB_PASS`` and ``GH_PAT`` hold a credential, ``COMPASS``, ``PATH`` and ``GIT_AUTHOR_NAME`` do not.
"""

import os
import re
from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_SURE = _words(
    """
    accesskey accesstoken apikey apikeys authtoken cred credential credentials creds dbpass mnemonic pass passcode
    passphrase passwd password passwords privatekey pwd refreshtoken secret secretkey secrets sshpass
    """
)
"""Whatever their values look like."""
_UNSURE = _words("auth bearer cookie cookies dsn jwt key keys pat sas sig signature token tokens webhook webhooks")
"""Such variables often hold other things: their values must look as if chance had made them."""
_SURE_PAIRS = {"key": frozenset({"access", "api", "private"}), "token": frozenset({"access", "auth", "refresh"})}
_ENDINGS = ("password", "passwd", "passphrase", "secret", "credential", "credentials", "apikey", "token", "key")
"""Words that people write together with the one before them: ``PGPASSWORD``."""
_KEY_AT_THE_END = _words("auth bearer jwt key pat token")
"""As the last word after another one: an agent may not start without such a variable, whatever its value."""
_NOT_A_VALUE = _words(
    """
    agent algorithm askpass cmd command count dir directory enabled env expiration expires expiry file format header
    helper home host hostname length limit manager method mode name path port prefix program provider size sock socket
    store timeout ttl type user username version
    """
)
"""As the last word: the variable says something about a credential, and holds none."""
_WORKING_FOLDERS = frozenset({"pwd", "oldpwd"})
_NAMES_OF_THIS_MACHINE = ("USER", "LOGNAME", "USERNAME", "HOSTNAME", "HOST", "NAME", "COMPUTERNAME")
_DUMMY_WORDS = _words(
    """
    anthropic any anything api apikey auth bar basic bearer bogus change changeme default demo dev
    development dummy empty example fake false foo for goes here ignored insert invalid irrelevant key
    lm lmstudio local localhost me mock my na needed nil no nokey none not nothing null ollama openai or
    password pk placeholder pw redacted replace required sample secret set sk some string studio test
    testing tests this todo token true undefined unset unused used value vllm with x xxx your
    """
)
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


def variable_kind(name: str) -> str | None:
    """``plain``: the variable holds a secret. ``loose``: it may. ``None``: it does not, by its name."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _NOT_A_VALUE or name.lower() in _WORKING_FOLDERS:
        return None
    kind = None
    for before, word in zip(["", *words], words, strict=False):
        if word in _SURE or before in _SURE_PAIRS.get(word.removesuffix("s"), ()):
            return "plain"
        ending = next((ending for ending in _ENDINGS if word.endswith(ending)), None)
        if ending in _SURE:
            return "plain"
        if word in _UNSURE or ending is not None:
            kind = "loose"
    return kind


def names_a_key(name: str) -> bool:
    """Whether an agent may need this variable set before it starts: ``HF_TOKEN`` may be; ``SORT_KEYS`` and ``HOTKEY``
    hold other things, although a secret may stand there, too."""
    kind = variable_kind(name)
    words = _WORD.findall(name)
    return kind == "plain" or (kind == "loose" and len(words) > 1 and words[-1].lower() in _KEY_AT_THE_END)


def names_this_machine(value: str, environ: Mapping[str, str]) -> bool:
    """True for what opens nothing and stands in many texts: the user, the host, existing files."""
    if value in {environ.get(name, "") for name in _NAMES_OF_THIS_MACHINE}:
        return True
    if hasattr(os, "uname") and value == os.uname().nodename:  # traces are written on Windows, too
        return True
    return _is_there(value) or any("/" in part and _is_there(part) for part in value.split(os.pathsep))


def _is_there(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a null byte, or what no file system can encode
        return False


def is_dummy(value: str) -> bool:
    """What stands where a key is asked for and none is needed; or our own placeholder."""
    if value.startswith("REDACTED"):
        return True
    words = [word for word in _SEPARATOR.split(value.lower()) if word]
    return all(word in _DUMMY_WORDS or len(set(word)) == 1 or _counts(word) for word in words)


def _counts(word: str) -> bool:
    """``123``, ``1234`` and the like."""
    return "1234567890".startswith(word)
