"""Leave out the lines with secrets in a text of settings. Pure.

A line counts if it gives a literal value to a name such as `TOKEN` or `_password`, or has a token
in a form that a service is known for. This is a guess: a person can give any name to a secret. A
value that names a variable or a command is none. Where a secret may go on in the next line,
nothing of the text is safe to show.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False  # most starts find nothing, and need no pattern
if TYPE_CHECKING:
    import re

# Each secret that the patterns find has one of these in it.
_HINTS = (
    b"token", b"pass", b"pwd", b"secret", b"key", b"auth", b"credential", b"bearer", b"basic",
    b"://", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"glpat-", b"sk-", b"xox",
    b"akia", b"asia", b"npm_", b"hf_", b"pypi-", b"aiza", b"eyj", b"sg.", b"dop_v1_", b"-u",
)  # fmt: skip
_KNOWN_FORMS = rb"""(?x)
    -----BEGIN\ [A-Z ]*PRIVATE | \bgh[pousr]_\w{20} | github_pat_\w{20} | glpat-[\w-]{16}
    | \bsk-[\w-]{16} | xox[abeoprs]-[\w-]{10} | \bA[KS]IA[0-9A-Z]{16} | \bnpm_\w{30} | \bhf_\w{20}
    | \bpypi-[\w-]{20} | \bAIza[\w-]{30} | \beyJ[\w-]{10,}\.[\w-]{10} | \bSG\.[\w-]{16}
    | dop_v1_\w{16} | AGE-SECRET-KEY- | ://[^/\s:@"']*:(?![$<{])[^/\s@]+@ | https?://[\w-]{20,}@
    | (?i:\b(?:basic|bearer)\s+[\w+/=.-]{8} | authorization\s*:\s*\w | sshpass\s+-p
      | \s(?:-u|--user)[\s=]*["']?[^\s"':$]+:[^\s"'$])
"""
_NAME = rb"""
    (?P<name>[\w.$:/@%-]*(?:token|passw|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key
      |_key|auth(?!or\b|ority)|credential|bearer|[_.-]pass|pgpass|smtppass|[_.-]pwd)[\w.-]*)
"""
_SETTING = rb"(?ix)" + _NAME + rb"""["']?\]?\s*[=:]+>?\s*(?P<value>.*)"""
_WORDS = rb"(?ix)^\s*(?:set\s.*|setenv\s+|machine\s.*)?" + _NAME + rb"\s+(?P<value>\S.*)"
_ELEMENT = rb"(?i)<([\w.-]*(?:token|passw|passphrase|secret|key|credential)[\w.-]*)>[^<>]+</\1>"
_NO_SECRET = rb"""(?ix)
    ["']?(?:\$\{?\w+\}?|\$\((?!\s*(?:echo|printf|base64)).*|`.*|true|false|yes|no|on|off|null|none
    |always|never|auto|legacy|\d{1,5})?["']?[\s,;]*(?:\#.*)?
"""
_PLACE = rb"(?i).*(?:file|path|dir|folder|sock|home|command|cmd|program|helper|timeout)"
_LITERAL = rb"""["']?(?=[^\s"']*\d)[\w+/=.~!@%^&*-]{8,}["']?[\s,;)}]*(?:\#.*)?"""
_COMMENTS = (b"#", b";")
_OPEN_ENDS = (b"\\", b"|", b">", b"(", b"[", b"{", b"|-", b">-")
_PRIVATE_KEY = b"PRIVATE KEY"


def without_secrets(text: bytes) -> bytes | None:
    """Return `text` without the lines that hold secrets; the same text if there are none.

    The result is None if what is left may hold a part of one. In an XML element, only the value is
    left out. If a heading such as `[url "https://TOKEN@host"]` holds one, its section is left out.
    """
    if not _may_have_secrets(text):
        return text
    kept, is_in_section = list[bytes](), False
    for line in _pattern(_ELEMENT).sub(rb"<\1></\1>", text).splitlines(keepends=True):
        bare = line.strip()
        is_heading = bare.startswith(b"[") and not bare.startswith(b"[[")
        if is_in_section and not is_heading:
            continue
        has_secret = _has_secret(line)
        is_in_section = is_heading and has_secret
        if not has_secret:
            kept.append(line)
        elif (_goes_on(bare) and not bare.startswith(_COMMENTS)) or _PRIVATE_KEY in bare:
            return None
    return b"".join(kept)


def has_literal_secret(text: bytes) -> bool:
    """Return whether a program has a secret in it. Programs often name secrets, so this is strict.

    It counts only known forms of tokens, and values of 8 characters or more with a digit in them.
    """
    if not _may_have_secrets(text):
        return False
    return any(_has_secret(line, _pattern(_LITERAL)) for line in text.splitlines())


def _may_have_secrets(text: bytes) -> bool:
    low = text.lower()
    return any(hint in low for hint in _HINTS)


def _has_secret(line: bytes, literal: re.Pattern[bytes] | None = None) -> bool:
    if not _may_have_secrets(line):
        return False
    if _pattern(_KNOWN_FORMS).search(line):
        return True
    if (found := _pattern(_SETTING).search(line) or _pattern(_WORDS).match(line)) is None:
        return False
    value = found["value"].strip()
    if not value and line.rstrip().endswith(b":") and literal is None:
        return True  # in YAML, the value is below
    if literal is not None:
        return literal.fullmatch(value) is not None
    is_place = _pattern(_PLACE).fullmatch(found["name"]) is not None
    if is_place and value.lstrip(b"\"'")[:1] in (b"/", b"~", b"$", b""):
        return False
    return _pattern(_NO_SECRET).fullmatch(value) is None


def _goes_on(line: bytes) -> bool:
    """Return whether what a line says may go on in the next line."""
    has_open_quote = any(line.count(quote) % 2 for quote in (b'"', b"'", b"`"))
    is_document = b"<<" in line or b'"""' in line or b"'''" in line
    return has_open_quote or is_document or line.endswith((*_OPEN_ENDS, b":"))


@cache
def _pattern(text: bytes) -> re.Pattern[bytes]:
    import re  # noqa: PLC0415 - see above

    return re.compile(text)
