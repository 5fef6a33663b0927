"""Read the addresses of repositories on other machines, and what a repository claims. Pure.

An origin is a claim: whoever can write `.git/config` chooses it. So it never approves anything by
itself. A rule that names an origin also names a folder, which the person chose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_USER, _HOST = rb"(?:[A-Za-z0-9_][A-Za-z0-9._~+-]*%s@)?", rb"([A-Za-z0-9][A-Za-z0-9.-]*)"
_PATH = rb"[A-Za-z0-9_.~@+][A-Za-z0-9_.~@+/-]*"
_URL = (
    rb"(https?|ssh|git)://" + _USER % rb"(?::[A-Za-z0-9._~+-]*)?" + _HOST + rb"(:[0-9]+)?"
    rb"/(" + _PATH + rb")"
)  # fmt: skip
_SCP_LIKE = _USER % rb"" + _HOST + rb":/?(" + _PATH + rb")"
_USUAL_PORTS = {b"http": b":80", b"https": b":443", b"ssh": b":22", b"git": b":9418"}
_ELSEWHERE = r"(?s)url\..*\.(?:push)?insteadof|include(?:if\..*)?\.path"
# `*` stands for a part of a host only at its start, so that no other owner of a name can match.
_PATTERN = r"(?:\*\.)?[a-z0-9][a-z0-9.-]*(?::[0-9]+)?/[A-Za-z0-9_.~@+/*?\[\]!-]+"


class Address(NamedTuple):
    """Where a repository on another machine is.

    `host` is in lower case, without the usual port. `owner` is the folder in which it lies there.
    """

    scheme: bytes
    host: bytes
    owner: bytes
    name: bytes

    @property
    def place(self) -> str:
        """Return it as in a rule, such as `github.com/acme/api`."""
        name = self.name.removesuffix(b".git")
        return b"/".join(part for part in (self.host, self.owner, name) if part).decode()


def address_of(url: bytes) -> Address | None:
    """Return where a URL leads; None unless it is plain and leads to another machine.

    A path is None, because a push runs the hooks of a repository that lies there. So is what git
    hands to a helper (`::`), and what could be taken for an option.
    """
    if found := re.fullmatch(_URL, url):
        scheme, host, port, path = found.groups()
        host += b"" if port == _USUAL_PORTS[scheme] else port or b""
    elif found := re.fullmatch(_SCP_LIKE, url):
        scheme, (host, path) = b"ssh", found.groups()
    else:
        return None
    *owner, name = path.strip(b"/").split(b"/")
    if any(part in (b"", b".", b"..") or part.startswith(b"-") for part in (*owner, name)):
        return None
    return Address(scheme, host.lower(), b"/".join(owner), name)


def claimed_place(settings: Iterable[tuple[str, bytes]]) -> str | None:
    """Return the one place from which `origin` fetches and to which it pushes, or None.

    `settings` are those of the repository's own file. There is no such place if they name several,
    or if they lead git elsewhere by `insteadOf` or by a file that they include.
    """
    places = set[str | None]()
    for name, value in settings:
        if re.fullmatch(_ELSEWHERE, name):
            return None
        if name in ("remote.origin.url", "remote.origin.pushurl"):
            address = address_of(value)
            places.add(None if address is None else address.place)
    return places.pop() if len(places) == 1 else None


def normalize_origin(typed: str) -> str | None:
    """Return the normal form of an address, or of a pattern such as `github.com/acme/*`, or None.

    In a pattern, `*`, `?`, and `[…]` match within one part, and `**` matches any number of parts.
    The host is literal, except for `*.` at its start.
    """
    if (address := address_of(typed.encode("utf-8", "surrogateescape"))) is not None:
        return address.place
    host, slash, path = typed.rstrip("/").partition("/")
    pattern = host.lower() + slash + path.removesuffix(".git")
    return pattern if re.fullmatch(_PATTERN, pattern) else None
