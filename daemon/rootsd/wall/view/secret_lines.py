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
    from collections.abc import Iterator

# Each secret that the patterns find has one of these in it, or two of the next table.
_HINTS = (
    b"token", b"pass", b"pw", b"secret", b"key", b"auth", b"cred", b"bearer", b"basic", b"cookie",
    b"jwt", b"_pat", b"otp", b"mfa", b"session", b"webhook", b"proxy", b"://", b"ghp_", b"gho_",
    b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"glpat-", b"sk-", b"xox", b"akia", b"asia",
    b"npm_", b"hf_", b"pypi-", b"aiza", b"eyj", b"sg.", b"dop_v1_", b"k_live", b"k_test", b"gsk_",
    b"whsec_", b"hvs.", b"atatt", b"nvapi-", b"shp", b"rubygems_",
)  # fmt: skip
# The first of these alone is in the settings of most people, in comments about login shells.
_HINTS_TOGETHER = {
    b"login": (b"-p", b"|", b"<<<"), b"mysql": (b"-p",), b"maria": (b"-p",), b"-u": (b":",),
    b"user=": (b":",), b"user =": (b":",),
}  # fmt: skip
_KNOWN_FORMS = rb"""(?x)
    -----BEGIN\ [A-Z ]*PRIVATE | \bgh[pousr]_\w{20} | github_pat_\w{20} | glpat-[\w-]{16}
    | \bsk-[\w-]{16} | xox[abeoprs]-[\w-]{10} | \bA[KS]IA[0-9A-Z]{16} | \bnpm_\w{30} | \bhf_\w{20}
    | \bpypi-[\w-]{20} | \bAIza[\w-]{30} | \beyJ[\w-]{10,}\.[\w-]{10} | \bSG\.[\w-]{16}
    | dop_v1_\w{16} | \b[rs]k_(?:live|test)_\w{16} | \bgsk_\w{20} | \bwhsec_[\w+/]{16}
    | \bhvs\.[\w-]{20} | \bATATT3[\w-]{20} | \bdckr_pat_ | \btskey-[\w-]{10} | \bnvapi-[\w-]{20}
    | \bshp(?:at|ca|ss)_\w{16} | \brubygems_\w{20} | AGE-SECRET-KEY- | /t/[\w-]{10,}/
    | hooks\.slack\.com/services/ | discord(?:app)?\.com/api/webhooks/
    | ://[^/\s:@"']{0,99}:(?![$<{])[^/\s@]{1,999}@ | https?://[\w-]{16,}@
    | (?i:\b(?:basic|bearer)\s+[\w+/=.-]{8} | authorization\s*:\s*\w | sshpass\s+-p
      | \s(?:-u|--user)[\s=]*["']?[^\s"':$]{1,99}:[^\s"'$])
"""
# In a program, these are often in the text of its help.
_COMMANDS = rb"""(?ix)
    ^\s*(?:-u|(?:--)?user)[\s=:]+["']?[^\s"':$/]{1,99}:[^\s"'$]
    | proxy\w{0,9}["']?\s*[=:]\s*["']?[^\s/@:$"']{1,99}:[^\s/@$]{1,999}@
    | \b(?:mysql|mariadb|login)\b.{0,200}\s-p\s*["']?[^\s"'$-]
    | \s--[\w-]{0,60}(?:token|passw(?:or)?d|passphrase|secret|api-?key)\s+["']?[^\s"'$|&;<>-]
    | \b(?:echo|printf)\s[^|$]{1,999}\|.{0,200}(?:stdin|with-token|login\b)
    | login\b.{0,200}<<<\s*["']?[^\s"'$]
    | \(\s*["'][\w.-]{0,60}STRONG["']\s*,\s*["'][^\s"'$]
    | STRONG(?: ["']>[^\s<$]
      | ["']?[\s,]+["']?(?:value["']?\s*[=:]|<\s*<\(\s*(?:echo|printf)|<<<)\s*["']?[^\s"'$] )
""".replace(b"STRONG", rb"(?:token|passw(?:or)?d|passphrase|secret|api_?key)\w{0,60}")
_NAME = rb"""
    (?P<name>(?:token|pass(?:\b|_|w|phrase|code)|pwd|pw(?:ord)?\b|secret|api_?key
      |(?<!signing)key(?:\b|_)|auth(?!or\b|ority)|credential|creds?(?:\b|_)|bearer|cookie|jwt
      |_pat(?:\b|_)|(?:otp|mfa)(?:\b|_)|session_?id|webhook)[\w.-]{0,60})
"""
_SETTING = rb"(?ix)" + _NAME + rb"""["']?\]?\s*[?+|]*[=:]+>?\s*(?P<value>.*)"""
_WORDS = rb"""(?ix)(?:\b(?:set|setenv|set-environment)\s(?:.{0,200}\s)?|\bprintf\s+-v\s+
      |\b(?:machine|default)\s.{0,200}\s
      |^\s*(?:(?=passw|token)|["'][^\s"'$]{0,200}(?=authtoken|_password|_auth\b)))
    (?P<name>\w{0,60}(?:token|pass\b|passw|secret|key\b|credential|_auth\b)\w{0,60})["']?\s+(?P<value>\S.*)
"""
_OPENED = rb"""(?ix)
    (<([\w.-]*(?:token|passw|passphrase|secret|private_?key|api_?key)[\w.-]*)(?:\s[^<>]*)?(?<!/)>)
"""
_ELEMENT = _OPENED + rb"[^<>]+(?=</\2>)"
_FULL_ELEMENT = _OPENED + rb"(?!</\2>)"
# A value that only a program would write: these occur in programs for other reasons, too.
_RANDOM = rb"""(?x)
    [=:\s]["']?(?: [0-9a-f]{32,}={0,2}["']?\s*$
      | (?=\w*\d)(?=\w*[a-z])(?=\w*[A-Z])[\w+-]{32,}={0,2}["']?(?:[\s;,)}]|$) )
"""
_MIN_RANDOM = 32
_RUNS = bytes(each if chr(each).isalnum() or each in b"_+-" else 32 for each in range(256))
_NO_SECRET = rb"""(?ix)
    ["']?(?:\$\{?\w+\}?|(?:\$\(|`)(?!\s*(?:echo|printf|base64)|.*<<).*|true|false|yes|no|on|off|null|none
    |always|never|auto|legacy|\d{1,5})?["']?[\s,;]*(?:\#.*)?
"""
_PLACE = rb"(?i).*(?:file|path|dir|folder|sock|home|command|cmd|program|helper|timeout)"
_LITERAL = rb"""["']?(?=[^\s"']*\d)[\w+/=.~!@%^&*-]{8,}["']?[\s,;)}]*(?:\#.*)?"""
_BEFORE_COMMAND = rb"""(?ix)
    \w*(?:token|passw|secret|key\b)\w*=["']?(?=[^\s"']*\d)[\w+/=.~!@%^&*-]{8,}["']?\s+\w
"""
_COMMENTS = (b"#", b";")
_SHELL_WORDS = (
    b"export ", b"alias ", b"declare ", b"typeset ", b"setenv ", b"set -x", b"set -gx", b"set -Ux"
)  # fmt: skip
_NOTHING = b":\n"
_OPEN_ENDS = (b"\\", b"|", b">", b"(", b"[", b"{", b"|-", b">-")
_PRIVATE_KEY = b"PRIVATE KEY"


def without_secrets(text: bytes) -> bytes | None:
    """Return `text` without the lines that hold secrets; the same text if there are none.

    The result is None if what is left may hold a part of one. In an XML element, only the value is
    left out. In a shell, `:` takes the place of a command. If a heading such as
    `[url "https://TOKEN@host"]` holds one, its section is left out.
    """
    if b"</" in text:
        text = _pattern(_ELEMENT).sub(rb"\1", text)
        if _pattern(_FULL_ELEMENT).search(text):
            return None
    if b"\0" in text:
        return None
    if not _may_have_secrets(text) and not _has_long_run(text):
        return text
    kept, is_in_section = list[bytes](), False
    lines = text.splitlines(keepends=True)
    for line, following in zip(lines, (*lines[1:], b""), strict=False):
        bare = line.strip()
        is_heading = bare.startswith(b"[") and not bare.startswith(b"[[")
        if is_in_section and not is_heading:
            continue
        has_secret = _has_secret(line)
        is_in_section = is_heading and has_secret
        is_open = has_secret and _goes_on(bare) and not bare.startswith(_COMMENTS)
        if is_open or _PRIVATE_KEY in bare or _has_value_below(line, following):
            return None
        if not has_secret:
            kept.append(line)
        elif bare.startswith(_SHELL_WORDS):  # a block of a shell must not be empty
            kept.append(_NOTHING)
    return b"".join(kept)


def has_literal_secret(text: bytes) -> bool:
    """Return whether a program has a secret in it. Programs often name secrets, so this is strict.

    It counts only known forms of tokens, and values of 8 characters or more with a digit in them.
    """
    return _may_have_secrets(text) and any(map(_has_literal, text.splitlines()))


def _may_have_secrets(text: bytes) -> bool:
    low = text.lower()
    return any(hint in low for hint in _HINTS) or any(
        hint in low and any(other in low for other in others)
        for hint, others in _HINTS_TOGETHER.items()
    )


def _has_long_run(text: bytes) -> bool:
    return any(len(run) >= _MIN_RANDOM for run in text.translate(_RUNS).split())


def _has_secret(line: bytes) -> bool:
    if _has_long_run(line) and _pattern(_RANDOM).search(line):
        return True
    if not _may_have_secrets(line):
        return False
    if _pattern(_KNOWN_FORMS).search(line) or _pattern(_COMMANDS).search(line):
        return True
    return any(not _is_harmless(name, value) for name, value in _named_values(line))


def _is_harmless(name: bytes, value: bytes) -> bool:
    is_place = _pattern(_PLACE).fullmatch(name) is not None
    is_path = value.lstrip(b"\"'")[:1] in (b"/", b"~", b"$")
    return (is_place and is_path) or _pattern(_NO_SECRET).fullmatch(value) is not None


def _has_literal(line: bytes) -> bool:
    if not _may_have_secrets(line):
        return False
    if _pattern(_KNOWN_FORMS).search(line) or _pattern(_BEFORE_COMMAND).match(line.lstrip()):
        return True
    return any(_pattern(_LITERAL).fullmatch(value) for _, value in _named_values(line))


def _named_values(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each name that sounds like one of a secret, and all of the line after it."""
    found = _pattern(_SETTING).search(line) or _pattern(_WORDS).search(line)
    while found is not None:
        yield found["name"], found["value"].strip()
        found = _pattern(_SETTING).search(line, found.start("value"))


def _has_value_below(line: bytes, following: bytes) -> bool:
    """Return whether a name of a secret has its value in the next line, as in YAML and INI."""
    depth = len(line) - len(line.lstrip())
    is_deeper = len(following) - len(following.lstrip()) > depth and following.strip()
    is_empty = line.rstrip().endswith((b":", b"="))
    if not (is_deeper and is_empty and _may_have_secrets(line)):
        return False
    return any(_named_values(line))


def _goes_on(line: bytes) -> bool:
    """Return whether what a line says may go on in the next line."""
    has_open_quote = any(line.count(quote) % 2 for quote in (b'"', b"'", b"`"))
    is_document = b"<<" in line.replace(b"<<<", b"") or b'"""' in line or b"'''" in line
    return has_open_quote or is_document or line.endswith(_OPEN_ENDS)


@cache
def _pattern(text: bytes) -> re.Pattern[bytes]:
    import re  # noqa: PLC0415 - see above

    return re.compile(text)
