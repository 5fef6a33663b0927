"""Decide which changes of a repository's settings may leave a private copy of them. Pure.

Behind the wall, programs change a copy of `.git/config`. A change is carried over to the file
outside only if git can run nothing because of it, and sends or fetches nothing elsewhere:

* the upstream of a branch that has none, on a remote from before the session. The upstream of
  another branch never changes, or the person's next push would go elsewhere. It is forgotten only
  where git would choose the same remote without it.
* a new remote with one address on another machine. Its name must not give a new meaning to what a
  person has set, such as `remote.pushDefault`.
* whether a submodule is active, and its address if host and owner are those of the origin. The
  program can write `.gitmodules`, so that proves nothing.
* the two Booleans of a sparse checkout, and the version that git-lfs writes.

`extensions.worktreeConfig` is never among them: with it, git outside obeys `config.worktree`,
which a program can create. Three versions are compared, and a change outside wins. The keys are
those of `git config --list`: section and variable are in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from rootsd.core.origins import address_of
from rootsd.disk.git_settings import is_program

Settings = Mapping[bytes, tuple[bytes, ...]]
"""The values of each key, in their order. A key without a value has `true`."""
SPARSE = frozenset((b"core.sparsecheckout", b"core.sparsecheckoutcone"))
_LFS_VERSION = b"lfs.repositoryformatversion"
_BOOLEANS = (b"true", b"false")
_UPSTREAM = frozenset((b"remote", b"merge", b"pushremote"))
_LEADING = frozenset((b"branch", b"remote", b"url", b"http", b"extensions"))
_HEADS, _ORIGIN = b"refs/heads/", b"origin"

_REMOTE_NAME = rb"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_SUBMODULE_NAME = rb"[A-Za-z0-9_.][A-Za-z0-9_.+/-]*"
# What git-check-ref-format(1) forbids, and a leading hyphen.
_NO_BRANCH = rb"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^-|^/|/$|//|(?:^|/)\.|\.$|\.lock(?:/|$)|^@?$"
_PATH = rb"[A-Za-z0-9_.~@+][A-Za-z0-9_.~@+/-]*"
_SECURE = frozenset((b"https", b"ssh"))


class Versions(NamedTuple):
    """The settings of one file: at the start of the session, and at three later times.

    `first` also has what a person has added since, but for remotes. `equal` are those when the
    copy was made from the file outside, or carried over to it. `named` are remotes that a person's
    settings name, and `carried` the keys that this session has added outside.
    """

    first: Settings
    equal: Settings
    outside: Settings
    inside: Settings
    named: frozenset[bytes] = frozenset()
    carried: frozenset[bytes] = frozenset()


class Carried(NamedTuple):
    """The changes for the file outside, and the keys whose changes stay in the copy.

    No values mean that the key is removed.
    """

    changes: Settings
    kept: tuple[bytes, ...]


def carry_over(versions: Versions) -> Carried:
    """Return which changes of the copy to carry over, and which keys stay in it."""
    inside, outside, equal = versions.inside, versions.outside, versions.equal
    sections: dict[tuple[bytes, bytes], set[bytes]] = {}
    for key in differing(equal, inside):
        if _values(inside, key) != _values(outside, key):
            sections.setdefault(_section_of(key), set()).add(key)
    changes: dict[bytes, tuple[bytes, ...]] = {}
    for (section, name), keys in sections.items():
        unchanged = {key for key in keys if _values(outside, key) == _values(equal, key)}
        for key in _RULES.get(section, _nothing)(versions, name, keys, unchanged):
            changes[key] = _values(inside, key)
    kept = {key for keys in sections.values() for key in keys} - changes.keys()
    in_order = {key: changes[key] for key in (*inside, *sorted(changes)) if key in changes}
    return Carried(in_order, tuple(sorted(kept)))


def first_sections(changes: Settings, limit: int) -> Settings:
    """Return the first changes, but all of a section, or none."""
    part: dict[bytes, tuple[bytes, ...]] = {}
    last = (b"", b"")
    for key, values in changes.items():
        if len(part) >= limit and _section_of(key) != last:
            break
        part[key], last = values, _section_of(key)
    return part


def differing(before: Settings, after: Settings) -> Iterator[bytes]:
    """Yield the keys that two versions do not have with the same values."""
    for key in dict.fromkeys((*before, *after)):
        if _values(before, key) != _values(after, key):
            yield key


def named_remotes(settings: Settings) -> Iterator[bytes]:
    """Yield the remotes that settings name, whether they exist or not."""
    for key, values in settings.items():
        section, name = _section_of(key)
        variable = _variable_of(key)
        if (section == b"branch" and name and variable in (b"remote", b"pushremote")) or (
            key in (b"remote.pushdefault", b"checkout.defaultremote") or section == b"remotes"
        ):
            yield from (word for value in values for word in value.split())


def may_harm(key: bytes) -> bool:
    """Return whether git may run something because of a setting, or lead a push elsewhere."""
    return _section_of(key)[0] in _LEADING or is_program(key.decode("utf-8", "replace"))


def checkout_of_submodule(settings: Settings) -> bytes | None:
    """Return the folder of the checkout that settings of a new submodule name.

    Return None if they have more than what `git submodule update --init` writes.
    """
    remotes = _remotes(settings)
    for key, values in settings.items():
        section, name = _section_of(key)
        usual = _OF_SUBMODULE.get((section, _variable_of(key)))
        if usual is None or len(values) != 1 or not usual(values[0], name, remotes):
            return None
    return settings.get(b"core.worktree", (None,))[0]


def _is_boolean(value: bytes, *_: object) -> bool:
    return value in _BOOLEANS


def _is_upstream(value: bytes, *_: object) -> bool:
    return value.startswith(_HEADS) and _is_branch(value.removeprefix(_HEADS))


def _is_fetch(value: bytes, name: bytes, _: object = None) -> bool:
    """Return whether a refspec fetches all branches of a remote, or one, to their usual place."""
    refs = value.removeprefix(b"+").partition(b":")
    branch = refs[0].removeprefix(_HEADS)
    return (
        refs == (_HEADS + branch, b":", b"refs/remotes/%s/%s" % (name, branch))
        and (branch == b"*" or _is_branch(branch))
    )  # fmt: skip


def _is_address(value: bytes, *_: object) -> bool:
    """Return whether a submodule may have this URL. As any nested repository, it may be local."""
    return re.fullmatch(rb"/" + _PATH, value) is not None or address_of(value) is not None


_OF_SUBMODULE: Mapping[tuple[bytes, bytes], Callable[[bytes, bytes, Collection[bytes]], bool]] = {
    (b"core", b"worktree"): lambda *_: True,  # the caller looks where it leads
    (b"core", b"repositoryformatversion"): lambda value, *_: value in (b"0", b"1"),
    (b"core", b"bare"): lambda value, *_: value == b"false",
    (b"core", b"filemode"): _is_boolean,
    (b"core", b"logallrefupdates"): _is_boolean,
    (b"core", b"ignorecase"): _is_boolean,
    (b"core", b"precomposeunicode"): _is_boolean,
    (b"core", b"symlinks"): _is_boolean,
    (b"extensions", b"objectformat"): lambda value, *_: value == b"sha256",
    (b"lfs", b"repositoryformatversion"): lambda value, *_: value == b"0",
    (b"remote", b"url"): _is_address,
    (b"remote", b"fetch"): _is_fetch,
    (b"branch", b"remote"): lambda value, _, remotes: value in remotes,
    (b"branch", b"merge"): _is_upstream,
    (b"submodule", b"active"): _is_boolean,
    (b"submodule", b"url"): _is_address,
}


_Rule = Callable[[Versions, bytes, Collection[bytes], Collection[bytes]], Collection[bytes]]
"""Takes the name of a section, its keys that differ, and those of them that are as before outside.
Returns those to carry over."""


def _nothing(*_: object) -> tuple[bytes, ...]:
    return ()


def _branch(
    versions: Versions, name: bytes, keys: Collection[bytes], unchanged: Collection[bytes]
) -> Collection[bytes]:
    """Carry over an upstream as a whole or not at all."""
    first, outside, inside = (
        _section(settings, b"branch", name)
        for settings in (versions.first, versions.outside, versions.inside)
    )
    if len(keys) != len(unchanged) or not _is_branch(name):
        return ()
    if not inside:
        same = (_default_remote(versions.outside), b".")
        stays = b"pushremote" not in outside and _single(outside, b"remote") in same
        return keys if stays or versions.carried.issuperset(keys) else ()
    is_new = _UPSTREAM.isdisjoint({*first, *outside})
    known = {b"."} | _remotes(versions.first, b"url") & _remotes(versions.outside, b"url")
    is_plain = (
        _single(inside, b"remote") in known
        and _is_upstream(_single(inside, b"merge"))
        and b"pushremote" not in inside
    )
    upstream = [key for key in keys if _variable_of(key) in _UPSTREAM]
    return upstream if is_new and is_plain else ()


def _remote(
    versions: Versions, name: bytes, keys: Collection[bytes], unchanged: Collection[bytes]
) -> Collection[bytes]:
    """Carry over a new section as a whole or not at all, and its end."""
    inside = _section(versions.inside, b"remote", name)
    if not inside and versions.carried.issuperset(keys):
        return keys if len(keys) == len(unchanged) else ()
    others = _remotes(versions.outside) | _remotes(versions.first)
    named = {
        *named_remotes(versions.outside), *named_remotes(versions.first), *versions.named,
    }  # fmt: skip
    if name == _ORIGIN and others:
        named.add(name)  # git would choose it where it chose another one
    is_new = name not in others | named and len(keys) == len(unchanged) == len(inside)
    is_plain = (
        inside.keys() == {b"url", b"fetch"}  # git writes these one after the other
        and re.fullmatch(_REMOTE_NAME, name) is not None
        and _is_branch(name)
        and address_of(_single(inside, b"url")) is not None
        and _is_fetch(_single(inside, b"fetch"), name)
    )
    return keys if is_new and is_plain else ()


def _submodule(
    versions: Versions, name: bytes, keys: Collection[bytes], unchanged: Collection[bytes]
) -> Collection[bytes]:
    inside = _section(versions.inside, b"submodule", name)
    before = {
        *_section(versions.first, b"submodule", name),
        *_section(versions.outside, b"submodule", name),
    }
    allowed = set()
    if inside.get(b"active", ()) in ((b"true",), (b"false",)):
        allowed.add(b"active")
    origin = address_of(_single(_section(versions.first, b"remote", _ORIGIN), b"url"))
    address = address_of(_single(inside, b"url"))
    if b"url" not in before and origin is not None and address is not None:
        is_near = address.owner and (address.host, address.owner) == (origin.host, origin.owner)
        if is_near and (address.scheme in _SECURE or address.scheme == origin.scheme):
            allowed.add(b"url")
    if not re.fullmatch(_SUBMODULE_NAME, name) or b".." in name:
        return ()
    return [key for key in keys if key in unchanged and _variable_of(key) in allowed]


def _core(
    versions: Versions, _: bytes, keys: Collection[bytes], unchanged: Collection[bytes]
) -> Collection[bytes]:
    allowed = ((), *((each,) for each in _BOOLEANS))
    return [
        key
        for key in keys
        if key in SPARSE and key in unchanged and _values(versions.inside, key) in allowed
    ]


def _lfs(
    versions: Versions, _: bytes, keys: Collection[bytes], unchanged: Collection[bytes]
) -> Collection[bytes]:
    is_plain = _values(versions.inside, _LFS_VERSION) == (b"0",)
    return [key for key in keys if key == _LFS_VERSION and key in unchanged and is_plain]


_RULES: Mapping[bytes, _Rule] = {
    b"branch": _branch, b"remote": _remote, b"submodule": _submodule, b"core": _core,
    b"lfs": _lfs,
}  # fmt: skip


def _section_of(key: bytes) -> tuple[bytes, bytes]:
    """Return the section of a key, and its name in quotes, which may have dots."""
    section, _, rest = key.partition(b".")
    return section, rest.rpartition(b".")[0]


def _variable_of(key: bytes) -> bytes:
    return key.rpartition(b".")[2]


def _section(settings: Settings, section: bytes, name: bytes) -> dict[bytes, tuple[bytes, ...]]:
    """Return the variables of a section with a name."""
    prefix = b"%s.%s." % (section, name)
    return {
        _variable_of(key): values
        for key, values in settings.items()
        if name and key.startswith(prefix) and b"." not in key[len(prefix) :]
    }


def _values(settings: Settings, key: bytes) -> tuple[bytes, ...]:
    return settings.get(key, ())


def _single(section: Settings, variable: bytes) -> bytes:
    """Return the value of a variable; empty if it has none or several."""
    values = section.get(variable, ())
    return values[0] if len(values) == 1 else b""


def _remotes(settings: Settings, variable: bytes = b"") -> set[bytes]:
    """Return the names of remotes that have any setting, or this one."""
    found = ((*_section_of(key), _variable_of(key)) for key in settings)
    return {
        name
        for section, name, has in found
        if section == b"remote" and name and variable in (b"", has)
    }


def _default_remote(settings: Settings) -> bytes:
    """Return the remote that git chooses for a branch without an upstream."""
    remotes = _remotes(settings)
    return next(iter(remotes)) if len(remotes) == 1 else _ORIGIN


def _is_branch(name: bytes) -> bool:
    return not re.search(_NO_BRANCH, name)
