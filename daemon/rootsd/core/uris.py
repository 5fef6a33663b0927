"""Validate URIs that a person adds as roots, and remove credentials from repository URLs.

URIs that a person adds by hand: roots that are no folders, such as `https://api.example.com/v1`.

They reach clients and models as they stand, so only one plain form is taken (RFC 3986).

Addresses of repositories, without what nobody may see.

An address is text that its author chose, and may hold a password or a token: before the host, or
in the query. It is shown, and never a ground for a decision.
"""

from __future__ import annotations

import re

_LONGEST = 2048
_WHOLE = re.compile(
    r"[a-z][a-z0-9+.-]{0,31}://"
    r"(?:(?P<user>[^/@?#]*)@)?"
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
    r"(?P<path>/[^?#]*)?"
    r"(?:\?[^#]*)?",
    re.ASCII,
)
_PLAIN = re.compile(r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_DOT = re.compile("%2e", re.IGNORECASE)
_ORIGIN = re.compile(r"^[^/]*//[^/?#]*")
# `file:` is what folders are for, and `roots:` is ours.
_NO_ROOTS = frozenset(["file", "roots", "javascript", "data", "vbscript", "about", "blob"])


class UriError(ValueError):
    """What cannot be a root by its URI; the message says why."""


def looks_like_uri(text: str) -> bool:
    """Whether a person who typed this meant a URI and no path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text, re.ASCII) is not None


def normalize_uri(text: str) -> str:
    """The URI with its scheme and host in small letters. Raises UriError."""
    if len(text) > _LONGEST:
        raise UriError(f"it is longer than {_LONGEST} characters")
    if not _PLAIN.fullmatch(text):
        raise UriError("it holds a character that a URI writes as %XX, or a fragment")
    uri = _ORIGIN.sub(lambda origin: _with_small_host(origin[0]), text)
    scheme = uri.partition(":")[0]
    if scheme in _NO_ROOTS:
        raise UriError(f"{scheme}: can be no root; a folder is added by its path")
    found = _WHOLE.fullmatch(uri)
    if found is None:
        raise UriError("it is not of the form https://host/path")
    if ":" in (found["user"] or ""):
        raise UriError("it holds a password, which every client would be told")
    # %2e is a dot to whoever resolves (url.spec.whatwg.org, "double-dot URL path segment").
    if {".", ".."} & set(_DOT.sub(".", found["path"] or "").split("/")):
        raise UriError("its path has a . or .. in it, which clients resolve")
    return uri


def _with_small_host(origin: str) -> str:
    scheme, _, authority = origin.partition("//")
    user, at, host = authority.rpartition("@")
    return f"{scheme.lower()}//{user}{at}{host.lower()}"


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#]*)@)?([^?#]*)", re.DOTALL)
_SCP = re.compile(r"(?:([^/@:]*)(?::[^/@]*)?@)?([^/@:]+):(?!//)([^?#]*)", re.DOTALL)
_USER_IS_PLAIN = frozenset({"ssh", "git+ssh", "ssh+git", "svn+ssh"})


def without_credentials(address: str) -> str:
    """The address without user and password, query and fragment; with ssh the user stays.

    What a token in the place of a user looks like is not to be told from a user, so that only
    ssh, where the user is part of the place, keeps it.
    """
    # What stood before a query may end in a blank of its own.
    return _bare(address.strip()).rstrip()


def _bare(address: str) -> str:
    if (url := _URL.fullmatch(address.partition("?")[0].partition("#")[0])) is not None:
        scheme, user, rest = url[1], url[2] or "", url[3]
        name = user.partition(":")[0] if scheme.lower() in _USER_IS_PLAIN else ""
        # A second `@` before the path: all up to it is what a sloppy reader takes for the user.
        host, slash, path = rest.partition("/")
        host = host.rpartition("@")[2]
        return f"{scheme}://{name + '@' if name else ''}{host}{slash}{path}"
    if "://" not in address and (place := _SCP.fullmatch(address)) is not None:
        return f"{place[1] + '@' if place[1] else ''}{place[2]}:{place[3]}"
    if "@" in address and "://" in address:
        return address.partition("://")[0] + "://" + address.rpartition("@")[2]
    return address.partition("?")[0].partition("#")[0]
