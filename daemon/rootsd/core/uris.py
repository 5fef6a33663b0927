"""Validate URIs that a person adds as roots, and remove credentials from repository addresses.

A person can add a root that is not a folder, such as `https://api.example.com/v1`. Such a URI
reaches clients and models unchanged, so rootsd allows only one plain form (RFC 3986).

The author of a repository chose its address. It may contain a password or a token, before the host
or in the query. rootsd shows the address without them, and makes no decision with it.
"""

from __future__ import annotations

import re

_MAX_LENGTH = 2048
_FILE_PREFIX = "file://"
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
# Folders use `file:`, and rootsd itself uses `roots:`.
_REFUSED_SCHEMES = frozenset(["file", "roots", "javascript", "data", "vbscript", "about", "blob"])


class UriError(ValueError):
    """A URI that cannot be a root. The message says why."""


def path_of_file_uri(text: str) -> bytes | None:
    """Return the path that a `file://` URI with an empty authority names (RFC 8089), or None."""
    if not text.startswith(_FILE_PREFIX + "/"):
        return None
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - 3 ms, and rarely needed

    return unquote_to_bytes(text.removeprefix(_FILE_PREFIX))


def looks_like_uri(text: str) -> bool:
    """Return whether `text` is meant as a URI and not as a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text, re.ASCII) is not None


def normalize_uri(text: str) -> str:
    """Return the URI with its scheme and host in lower case. Raises UriError."""
    if len(text) > _MAX_LENGTH:
        raise UriError(f"it is longer than {_MAX_LENGTH} characters")
    if not _PLAIN.fullmatch(text):
        raise UriError("it contains a fragment, or a character that a URI writes as %XX")
    uri = _ORIGIN.sub(lambda origin: _with_lower_case_host(origin[0]), text)
    scheme = uri.partition(":")[0]
    if scheme in _REFUSED_SCHEMES:
        raise UriError(f"a {scheme}: URI cannot be a root; add a folder by its path")
    found = _WHOLE.fullmatch(uri)
    if found is None:
        raise UriError("it is not of the form https://host/path")
    if ":" in (found["user"] or ""):
        raise UriError("it contains a password, which every client would see")
    # URL parsers treat %2e as a dot (url.spec.whatwg.org, "double-dot URL path segment").
    if {".", ".."} & set(_DOT.sub(".", found["path"] or "").split("/")):
        raise UriError("its path has a . or .. in it, which clients resolve")
    return uri


def _with_lower_case_host(origin: str) -> str:
    scheme, _, authority = origin.partition("//")
    user, at, host = authority.rpartition("@")
    return f"{scheme.lower()}//{user}{at}{host.lower()}"


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#]*)@)?([^?#]*)", re.DOTALL)
_SCP = re.compile(r"(?:([^/@:]*)(?::[^/@]*)?@)?([^/@:]+):(?!//)([^?#]*)", re.DOTALL)
_USER_IS_PLAIN = frozenset({"ssh", "git+ssh", "ssh+git", "svn+ssh"})


def without_credentials(address: str) -> str:
    """Return the address without user, password, query, and fragment. With ssh, keep the user.

    A user may in fact be a token. Only with ssh does the address need the user.
    """
    # The text before a query may end with a space.
    return _bare(address.strip()).rstrip()


def _bare(address: str) -> str:
    if (url := _URL.fullmatch(address.partition("?")[0].partition("#")[0])) is not None:
        scheme, user, rest = url[1], url[2] or "", url[3]
        name = user.partition(":")[0] if scheme.lower() in _USER_IS_PLAIN else ""
        # If there is a second `@` before the path, some parsers take all before it as the user.
        host, slash, path = rest.partition("/")
        host = host.rpartition("@")[2]
        return f"{scheme}://{name + '@' if name else ''}{host}{slash}{path}"
    if "://" not in address and (place := _SCP.fullmatch(address)) is not None:
        return f"{place[1] + '@' if place[1] else ''}{place[2]}:{place[3]}"
    if "@" in address and "://" in address:
        return address.partition("://")[0] + "://" + address.rpartition("@")[2]
    return address.partition("?")[0].partition("#")[0]


_PORT = re.compile(r":[0-9]*$")


def owner_of(address: str) -> str:
    """Return the host and the owner of a repository, such as `github.com/acme`.

    `address` is a result of `without_credentials`. For a repository in a folder, the result is the
    folder that holds it. It is empty if the address names no owner.
    """
    if (url := _URL.fullmatch(address)) is not None:
        scheme, (host, _, path) = url[1].lower(), url[3].partition("/")
        if scheme == "file":
            return _above(f"/{path}")
    elif (place := _SCP.fullmatch(address)) is not None:
        host, path = place[2], place[3]
    else:
        return _above(address)
    owner = _above(path.lstrip("/"))
    host = _PORT.sub("", host).lower()
    return f"{host}/{owner}" if owner else host


def _above(path: str) -> str:
    """Return the folder above a path, or an empty text."""
    return path.rstrip("/").rpartition("/")[0].rstrip("/")
