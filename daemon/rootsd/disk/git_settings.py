"""Read the names and values in a text of git's settings, as git itself reads them. Pure.

`git config --list` would answer the same, but the daemon must not start a program, and a hostile
repository should not choose what git reads. A test compares both. Includes are not followed.
Source: git-config(1), and `config.c` of git 2.39.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SECTION = re.compile(rb'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_NAME = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_SPACE = re.compile(rb"(?:[ \t\r\n\f\v]+|[#;][^\n]*)+")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_VALUE = re.compile(
    rb"""[ \t]*((?: \\\r?\n | \\. | "(?:[^"\\\n]|\\\r?\n|\\.)*" | [^"\\\n#;] )*)[^\n]*""",
    re.VERBOSE,
)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}
_MARK = b"\xef\xbb\xbf"
# The settings whose values git runs, or that name further settings. See git-config(1).
_PROGRAMS = re.compile(
    r"""core\.(fsmonitor|hookspath|sshcommand|gitproxy|editor|pager|askpass)
    | core\.alternaterefscommand
    | filter\..*\.(clean|smudge|process) | diff\.(external|.*\.(command|textconv))
    | merge\..*\.driver | (merge|diff|gui)tool\..*\.cmd | gpg\.(.*\.)?program
    | credential\.(.*\.)?helper | uploadpack\.packobjectshook | alias\..* | pager\..*
    | remote\..*\.(uploadpack|receivepack|vcs) | submodule\..*\.update | sequence\.editor
    | protocol\.(.*\.)?allow
    | interactive\.difffilter | trailer\..*\.(command|cmd) | include\.path | includeif\..*
    | (browser|man)\..*\.(cmd|path)""",
    re.VERBOSE | re.DOTALL,
)
_NOT_A_PROGRAM = re.compile(
    r"""core\.fsmonitor=(true|false|1|0|yes|no|on|off|) | submodule\..*\.update=[^!].*
    | pager\..*=(true|false)""",
    re.VERBOSE | re.IGNORECASE,
)


def read_settings(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name, such as `core.fsmonitor`, and the value of each setting.

    Sections and names are in lower case. A setting without `=` has the value `true`. Where git
    would refuse the rest of the text, the rest is left out.
    """
    text = text.removeprefix(_MARK)
    at, section = 0, b""
    while at < len(text):
        if found := _SPACE.match(text, at):
            pass
        elif found := _SECTION.match(text, at):
            section = found[1].lower()
            if found[2] is not None:
                section += b"." + _ESCAPE.sub(rb"\1", found[2])
        elif found := _NAME.match(text, at):
            name, value = found[1].lower(), b"true"
            if text[found.end() : found.end() + 1] == b"=":
                found = _VALUE.match(text, found.end() + 1)
                assert found is not None  # it matches an empty value
                value = _plain(found[1])
            yield (section + b"." + name).decode("utf-8", "replace"), value
        else:
            return
        at = found.end()


def program_settings(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each setting that makes git run a program."""
    for name, raw in read_settings(text):
        value = raw.decode("utf-8", "replace")
        if _PROGRAMS.fullmatch(name) and not _NOT_A_PROGRAM.fullmatch(f"{name}={value}"):
            yield name, value


def is_program(name: str) -> bool:
    """Return whether the value of a setting may be a command, or name further settings."""
    return bool(_PROGRAMS.fullmatch(name))


def worktree_setting(text: bytes) -> bytes | None:
    """Return the folder that a git directory names as its checkout, or None."""
    return dict(read_settings(text)).get("core.worktree")


def _plain(value: bytes) -> bytes:
    """Return a value without its continued lines, quotes, and escapes."""
    joined = re.sub(rb"\\\r?\n", b"", value).strip()
    unquoted = re.sub(rb'(?<!\\)"', b"", joined)
    return _ESCAPE.sub(lambda found: _LETTERS.get(found[1], found[1]), unquoted)
