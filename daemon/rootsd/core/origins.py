"""Addresses of repositories, without what nobody may see.

An address is text that its author chose, and may hold a password or a token: before the host, or
in the query. It is shown, and never a ground for a decision.
"""

from __future__ import annotations

import re

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
