"""Names that say what stands behind them: headers, query parameters and options.

Request headers are kept by an allow-list, since nobody can list every header that some gateway uses for keys.
"""

import re

from rewind.credentials import variable_kind


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEPT_REQUEST_HEADERS = {
    "accept": "what the client understands",
    "accept-charset": "same",
    "accept-encoding": "same",
    "accept-language": "same",
    "amz-sdk-invocation-id": "groups the retries of one call",
    "amz-sdk-request": "attempt number",
    "anthropic-beta": "changes what the API does",
    "anthropic-version": "changes what the API does",
    "cache-control": "asks for a fresh answer",
    "connection": "framing",
    "content-encoding": "needed to read the body",
    "content-language": "says what the body is",
    "content-length": "framing",
    "content-type": "needed to read the body",
    "expect": "framing",
    "host": "which server was meant",
    "idempotency-key": "names a retry; made up by the SDK for each call, opens nothing",
    "if-modified-since": "changes the answer",
    "if-none-match": "changes the answer",
    "keep-alive": "framing",
    "mcp-protocol-version": "changes what the server does",
    "openai-beta": "changes what the API does",
    "range": "changes the answer",
    "sec-websocket-extensions": "framing of a WebSocket",
    "sec-websocket-protocol": "which protocol is spoken; keys that browsers put there are replaced",
    "sec-websocket-version": "framing of a WebSocket",
    "te": "framing",
    "trailer": "framing",
    "transfer-encoding": "framing",
    "upgrade": "framing",
    "user-agent": "which SDK, which version",
    "x-amz-target": "the operation that is called",
    "x-amzn-bedrock-accept": "what the client understands",
    "x-client-request-id": "finds the call in the provider's log",
    "x-goog-api-client": "which SDK, which version",
    "x-request-id": "finds the call in the provider's log",
}
"""Name and reason. Every other request header is dropped."""

KEPT_REQUEST_PREFIXES = ("x-stainless-",)
"""What OpenAI's and Anthropic's SDKs tell of themselves: platform, version, retry count."""

KEY_HEADERS = _names(
    """
    api-key apikey authorization cf-aig-authorization helicone-auth ocp-apim-subscription-key
    private-token proxy-authorization x-access-token x-amz-security-token x-api-key x-auth-token
    x-functions-key x-goog-api-key x-litellm-api-key x-portkey-api-key x-rapidapi-key
    x-subscription-token x-vault-token xi-api-key
    """
)
"""The value is a key, however it looks; less its scheme, where it names one."""

COOKIE_HEADERS = frozenset({"cookie", "set-cookie", "set-cookie2"})

ACCOUNT_HEADERS = _names(
    """
    anthropic-organization-id anthropic-workspace-id chatgpt-account-id mcp-session-id
    openai-organization openai-project x-goog-user-project
    """
)
"""They name whose account it is, or a session on somebody's server."""

KEPT_RESPONSE_HEADERS = frozenset({"mcp-session-id"})
"""The client must send it back, so a replay has to hand it out; the server forgets it with the session."""

_CREDENTIAL_WORDS = r"authorization|auth|apikey|api[-_]?key|key|token|secret|passwd|password|credentials?|signature"
_CREDENTIAL_HEADER = re.compile(rf"(?:^|[-_])(?:{_CREDENTIAL_WORDS}|cookies?)$", re.IGNORECASE)

KEY_PARAMETERS = _names(
    """
    access_token api-key api_key apikey auth_token awsaccesskeyid client_assertion client_secret
    id_token password passwd private_token refresh_token secret session_token subscription-key
    x-amz-credential x-amz-security-token x-amz-signature x-goog-credential x-goog-signature
    """
)
"""Replaced whatever the value is, so that a replay with a dummy key asks the same."""

LOOSE_PARAMETERS = frozenset({"auth", "jwt", "key", "sig", "signature", "token"})
"""Replaced if the value is random or a dummy: ``?key=title`` asks something else than ``?key=author``."""

PASSING_PARAMETERS = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature", "x-amz-credential"})
"""Good for one URL; there may be a new one in every request."""

_OPTION = re.compile(
    r"(?:^|[-_.])(?:api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|auth[-_]?key|apikey|token|secret|"
    r"password|passwd|passphrase|credentials?|authorization|bearer)$",
    re.IGNORECASE,
)
_LOOSE_OPTION = re.compile(r"(?:^|[-_.])(?:key|auth|sig|signature)$|key$|token$", re.IGNORECASE)


def is_credential_header(name: str) -> bool:
    """Whether that header (in lower case) is there to say who is asking."""
    if name in KEPT_REQUEST_HEADERS or name == "sec-websocket-key":
        return False
    return name in KEY_HEADERS or name in COOKIE_HEADERS or bool(_CREDENTIAL_HEADER.search(name))


def is_kept_request_header(name: str) -> bool:
    """Whether a request header (in lower case) may be stored."""
    return name in KEPT_REQUEST_HEADERS or name.startswith(KEPT_REQUEST_PREFIXES)


def is_kept_response_header(name: str) -> bool:
    """Whether a response header (in lower case) may be stored: all but cookies, keys and account ids."""
    if name in KEPT_RESPONSE_HEADERS:
        return True
    return not (name in COOKIE_HEADERS or name in ACCOUNT_HEADERS or name in KEY_HEADERS or "organization" in name)


def option_kind(name: str) -> str | None:
    """As ``variable_kind``, for ``--options`` and ``NAME=value`` on a command line."""
    bare = name.lstrip("-")
    if _OPTION.search(bare):
        return "plain"
    if bare.isupper() and (kind := variable_kind(bare)) is not None:  # a variable: env DB_PASS=… command
        return kind
    return "loose" if _LOOSE_OPTION.search(bare) else None
