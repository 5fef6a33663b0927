"""Read from the URL of an origin what git asks for there: of ssh, or of a credential helper.

Only the forms of URLs that are certain are read; for any other, git asks for nothing. Sources:
`parse_connect_url` in git's connect.c, gitcredentials(7).
"""

from __future__ import annotations

from typing import NamedTuple

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_IN_HOST = _LETTERS + b"._-"
_IN_USER = _LETTERS + b"._-+~$=,!*#&"
_CONTROLS = bytes(range(0x20)) + b"\x7f"
_MAX_PORT = 5  # digits
PROTOCOL_OPTION = (b"-o", b"SendEnv=GIT_PROTOCOL")
"""What git gives to ssh if the variable GIT_PROTOCOL matters."""
_PROTOCOLS = (b"", b"version=0", b"version=1", b"version=2")
_OF_A_PLACE = (b"protocol", b"host", b"username", b"path")


class SshRequest(NamedTuple):
    """What git gives to ssh to run its program at an origin, without the variable's option."""

    words: tuple[bytes, ...]

    def is_asked_by(self, request: tuple[bytes, ...]) -> bool:
        """Return whether a request of `git_inside` is exactly this."""
        kind, protocol, *words = request if len(request) > 1 else (b"", b"")
        words = words[2:] if tuple(words[:2]) == PROTOCOL_OPTION else words
        return kind == b"ssh" and protocol in _PROTOCOLS and tuple(words) == self.words


class HttpsPlace(NamedTuple):
    """A repository that git reaches by https. `host` has the port, if the URL has one."""

    host: bytes
    user: bytes
    path: bytes

    def description(self) -> bytes:
        """Return what git tells a credential helper about it."""
        user = b"username=%s\n" % self.user if self.user else b""
        return b"protocol=https\nhost=%s\n%spath=%s\n\n" % (self.host, user, self.path)

    def is_asked_by(self, request: tuple[bytes, ...]) -> bool:
        """Return whether git asks a helper for the password of exactly this place."""
        if len(request) != len((b"credential", b"the fields")) or request[0] != b"credential":
            return False
        fields = [line.partition(b"=")[::2] for line in request[1].split(b"\n")]
        found = {name: text for name, text in fields if name in _OF_A_PLACE}
        right = {b"protocol": b"https", b"host": self.host, b"path": self.path}
        right[b"username"] = self.user or found.get(b"username", b"")
        is_once = sum(name in found for name, _ in fields) == len(found)
        is_there = found.keys() >= {b"protocol", b"host"}
        return is_once and is_there and found.items() <= right.items()


def ssh_request(url: bytes, program: bytes) -> SshRequest | HttpsPlace | None:
    """Return how git runs a program at a URL for ssh, or None for another URL."""
    scheme, is_url, rest = url.partition(b"://")
    if is_url:
        authority, slash, path = rest.partition(b"/")
        path = slash + path
        is_wrong = scheme not in (b"ssh", b"git+ssh", b"ssh+git") or path == slash or b"%" in path
    else:
        authority, _, path = url.partition(b":")
        is_wrong = path.startswith(b":")  # a remote helper such as ext::
    if path[1:2] == b"~":
        path = path[1:]
    found = _authority(authority)
    if is_wrong or found is None or not path or path.startswith(b"-") or _has_controls(path):
        return None
    user, host, port = found
    options = (b"-p", port) if port else ()
    command = program + b" " + _quoted(path)
    return SshRequest((*options, user + b"@" + host if user else host, command))


def https_place(url: bytes) -> HttpsPlace | None:
    """Return the place of a URL for https, or None. One with a password needs no helper."""
    scheme, _, rest = url.partition(b"://")
    authority, _, path = rest.partition(b"/")
    found = _authority(authority)
    if scheme != b"https" or found is None or b" " in path or _has_controls(path):
        return None
    user, host, port = found
    return HttpsPlace(host + b":" + port if port else host, user, path)


def _authority(text: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return user, host, and port, if each has a form that nothing can misunderstand."""
    user, at, place = text.rpartition(b"@")
    host, colon, port = place.partition(b":")
    is_right = (
        bool(host)
        and host[:1] not in b".-"
        and not host.translate(None, _IN_HOST)
        and bool(at) == bool(user)
        and not user.startswith(b"-")
        and not user.translate(None, _IN_USER)
        and bool(colon) == (port.isdigit() and len(port) <= _MAX_PORT)
    )
    return (user, host, port) if is_right else None


def _has_controls(text: bytes) -> bool:
    return text.translate(None, _CONTROLS) != text


def _quoted(path: bytes) -> bytes:
    """Quote a path as git does for the shell of the other machine."""
    return b"'" + path.replace(b"'", b"'\\''").replace(b"!", b"'\\!'") + b"'"
