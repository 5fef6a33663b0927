"""No setting that runs something, or leads a push or a fetch elsewhere, leaves a private copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.origins import address_of
from rootsd.wall.git.carried_settings import (
    Carried,
    Settings,
    Versions,
    carry_over,
    checkout_of_submodule,
)
from rootsd.wall.git.settings_file import BadSettings, edit_settings, list_settings

START = """
[core]
	repositoryformatversion = 0
[remote "origin"]
	url = https://example.org/team/tool.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "fork"]
	url = git@example.org:me/tool.git
	fetch = +refs/heads/*:refs/remotes/fork/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[branch "mine"]
	remote = fork
	merge = refs/heads/mine
[branch "old"]
	pushRemote = fork
[submodule "known"]
	url = https://example.org/team/known.git
"""
_FETCH = "\tfetch = +refs/heads/*:refs/remotes/new/*\n"


@cache
def settings(text: str) -> Settings:
    return list_settings(text.encode())


def carried(inside: str, outside: str = START, equal: str = START) -> Carried:
    """Compare a copy with the file outside, after a start with START."""
    versions = Versions(settings(START), settings(equal), settings(outside), settings(inside))
    return carry_over(versions)


def shown(changes: Settings) -> dict[str, str]:
    return {key.decode(): b" ".join(values).decode() for key, values in changes.items()}


_CARRIED = {
    '[branch "new"]\nremote = origin\nmerge = refs/heads/new':
        {"branch.new.remote": "origin", "branch.new.merge": "refs/heads/new"},
    '[branch "a.b/ü"]\nremote = fork\nmerge = refs/heads/a.b/ü':
        {"branch.a.b/ü.remote": "fork", "branch.a.b/ü.merge": "refs/heads/a.b/ü"},
    '[branch "new"]\nremote = .\nmerge = refs/heads/main':
        {"branch.new.remote": ".", "branch.new.merge": "refs/heads/main"},
    '[remote "new"]\nurl = https://example.net/x.git\n' + _FETCH:
        {"remote.new.url": "https://example.net/x.git",
         "remote.new.fetch": "+refs/heads/*:refs/remotes/new/*"},
    '[remote "new"]\nurl = me@example.net:x/y\n' + _FETCH:
        {"remote.new.url": "me@example.net:x/y",
         "remote.new.fetch": "+refs/heads/*:refs/remotes/new/*"},
    '[submodule "lib"]\nactive = true\nurl = git@example.org:team/lib.git':
        {"submodule.lib.active": "true", "submodule.lib.url": "git@example.org:team/lib.git"},
    '[submodule "known"]\nactive = false': {"submodule.known.active": "false"},
    "[core]\nsparseCheckout = true\nsparseCheckoutCone = false":
        {"core.sparsecheckout": "true", "core.sparsecheckoutcone": "false"},
    "[lfs]\nrepositoryFormatVersion = 0": {"lfs.repositoryformatversion": "0"},
}  # fmt: skip


@pytest.mark.parametrize("text", _CARRIED)
def test_what_git_writes_in_daily_work_is_carried_over(text: str) -> None:
    found = carried(START + text)
    assert shown(found.changes) == _CARRIED[text]
    assert found.kept == ()
    # Once it is outside, nothing is left to do.
    assert carried(START + text, START + text) == Carried({}, ())


# Each of these runs something, or leads a push or a fetch elsewhere, or may do so.
_REFUSED = [
    ("core", "", "fsmonitor", "touch /tmp/x"),
    ("core", "", "hooksPath", "hooks"),
    ("core", "", "sshCommand", "sh -c x"),
    ("core", "", "gitProxy", "x"),
    ("core", "", "editor", "x"),
    ("core", "", "pager", "x"),
    ("core", "", "askPass", "x"),
    ("core", "", "alternateRefsCommand", "x"),
    ("core", "", "worktree", "/home"),
    ("core", "", "bare", "true"),
    ("core", "", "attributesFile", "x"),
    ("core", "", "excludesFile", "x"),
    ("core", "", "repositoryformatversion", "1"),
    ("core", "", "sparseCheckout", "yes; x"),
    ("extensions", "", "worktreeConfig", "true"),
    ("extensions", "", "partialClone", "fork"),
    ("filter", "x", "clean", "x"),
    ("filter", "x", "smudge", "x"),
    ("filter", "x", "process", "x"),
    ("diff", "", "external", "x"),
    ("diff", "x", "command", "x"),
    ("diff", "x", "textconv", "x"),
    ("merge", "x", "driver", "x"),
    ("mergetool", "x", "cmd", "x"),
    ("difftool", "x", "cmd", "x"),
    ("guitool", "x", "cmd", "x"),
    ("gpg", "", "program", "x"),
    ("gpg", "ssh", "program", "x"),
    ("gpg", "ssh", "defaultKeyCommand", "x"),
    ("credential", "", "helper", "!x"),
    ("credential", "https://example.org", "helper", "!x"),
    ("uploadpack", "", "packObjectsHook", "x"),
    ("alias", "", "st", "!x"),
    ("pager", "", "log", "x"),
    ("sequence", "", "editor", "x"),
    ("interactive", "", "diffFilter", "x"),
    ("trailer", "x", "command", "x"),
    ("trailer", "x", "cmd", "x"),
    ("hook", "x", "command", "x"),
    ("browser", "x", "cmd", "x"),
    ("man", "x", "path", "x"),
    ("sendemail", "", "smtpServer", "/tmp/x"),
    ("lfs", "customtransfer.x", "path", "x"),
    ("lfs", "", "url", "https://example.net"),
    ("lfs", "", "repositoryFormatVersion", "1"),
    ("include", "", "path", "evil"),
    ("includeIf", "gitdir:/", "path", "evil"),
    ("url", "https://example.net/", "insteadOf", "https://example.org/"),
    ("url", "https://example.net/", "pushInsteadOf", "https://example.org/"),
    ("http", "", "proxy", "http://example.net"),
    ("http", "", "sslVerify", "false"),
    ("http", "https://example.org/", "extraHeader", "x"),
    ("protocol", "ext", "allow", "always"),
    ("safe", "", "directory", "*"),
    ("push", "", "default", "matching"),
    ("push", "", "recurseSubmodules", "on-demand"),
    ("remote", "", "pushDefault", "fork"),
    ("remote", "origin", "pushurl", "https://example.net/x"),
    ("remote", "origin", "push", "main:other"),
    ("remote", "origin", "uploadpack", "x"),
    ("remote", "origin", "receivepack", "x"),
    ("remote", "origin", "vcs", "x"),
    ("remote", "origin", "proxy", "http://example.net"),
    ("remotes", "", "origin", "fork"),
    ("branch", "main", "pushRemote", "fork"),
    ("branch", "main", "mergeOptions", "--strategy=evil"),
    ("branch", "new", "remote", "fork"),  # without what to merge
    ("branch", "new", "pushRemote", "fork"),
    ("branch", "new", "merge", "refs/heads/new"),
    ("submodule", "known", "update", "!x"),
    ("submodule", "lib", "update", "checkout"),
    ("submodule", "lib", "url", "https://example.net/team/lib.git"),
    ("submodule", "lib", "url", "https://example.org/other/lib.git"),
    ("submodule", "lib", "url", "http://example.org/team/lib.git"),
    ("submodule", "lib", "url", "https://example.org:8080/team/lib.git"),
    ("submodule", "lib", "url", "https://example.org@example.net/team/lib.git"),
    ("submodule", "lib", "url", "https://example.org/team/../other/lib.git"),
    ("submodule", "lib", "url", "ext::sh -c x"),
    ("submodule", "lib", "url", "/home/x/team/lib"),
    ("submodule", "../lib", "active", "true"),
    ("submodule", "lib", "active", "!x"),
]  # fmt: skip


def _spellings(section: str, name: str, variable: str, value: str) -> dict[str, str]:
    """Return texts with one setting, in the ways in which git reads it."""
    header = f'[{section} "{name}"]' if name else f"[{section}]"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    plain = f'{header}\n\t{variable} = "{quoted}"\n'
    found = {
        "plain": plain,
        "case": plain.replace(f"[{section}", f"[{section.swapcase()}").replace(
            f"\t{variable}", f"\t{variable.upper()}"
        ),
        "one line": f'{header} {variable} = "{quoted}" ; {variable} = true\n',
        "continued": f'{header}\n\t{variable} = \\\n\t"{quoted}"\n',
        "in parts": f'{header}\n\t{variable} = "{quoted[:1]}"{quoted[1:2]}"{quoted[2:]}"\n',
        "carriage returns": plain.replace("\n", "\r\n"),
        "after a comment": f"# {header}\n{header} # \\\n; x = y\n{variable} = \"{quoted}\"\n",
    }  # fmt: skip
    if name and name == name.lower() and all(letter.isalnum() for letter in name):
        found["old form"] = f'[{section}.{name}]\n\t{variable} = "{quoted}"\n'
    return found


@pytest.mark.parametrize("setting", _REFUSED, ids=lambda each: ".".join(each[:3]))
def test_a_setting_that_runs_or_redirects_is_refused_in_any_spelling(
    setting: tuple[str, str, str, str],
) -> None:
    section, name, variable, _ = setting
    key = ".".join(filter(None, (section.lower(), name, variable.lower()))).encode()
    for spelling, text in _spellings(*setting).items():
        assert key in settings(START + text), spelling  # the control: git reads it
        found = carried(START + text)
        assert found == Carried({}, (key,)), spelling


# What a program could do to remotes and branches that exist, and with a remote of its own.
_REDIRECTED = {
    "another address": START.replace("example.org/team", "example.net/team"),
    "a second address": START.replace("tool.git\n", "tool.git\n\turl = https://x.net/x\n", 1),
    "another upstream": START.replace("remote = origin", "remote = fork"),
    "another branch": START.replace("refs/heads/main", "refs/heads/other"),
    "an upstream where another remote is pushed to":
        START + '[branch "old"]\nremote = origin\nmerge = refs/heads/old',
    "no upstream, so that git chooses another remote":
        START.replace('[branch "mine"]\n\tremote = fork\n\tmerge = refs/heads/mine\n', ""),
    "a part of an upstream": START.replace("\tmerge = refs/heads/main\n", ""),
    "no remote": START.replace("url = git@example.org:me/tool.git", ""),
    "a renamed remote": START.replace('[remote "origin"]', '[remote "new"]'),
    "an upstream on a new remote": START
        + '[remote "new"]\nurl = https://example.net/x.git\n' + _FETCH
        + '[branch "new"]\nremote = new\nmerge = refs/heads/new',
    "an upstream at an address":
        START + '[branch "new"]\nremote = https://example.net/x\nmerge = refs/heads/new',
    "an upstream at a folder": START + '[branch "new"]\nremote = evil\nmerge = refs/heads/new',
    "an upstream that is no branch":
        START + '[branch "new"]\nremote = origin\nmerge = refs/tags/new',
    "a branch like an option": START + '[branch "-x"]\nremote = origin\nmerge = refs/heads/x',
    "an upstream like an option": START + '[branch "x"]\nremote = origin\nmerge = refs/heads/-x',
    "two upstreams":
        START + '[branch "new"]\nremote = origin\nremote = fork\nmerge = refs/heads/new',
    "an upstream with another place for pushes":
        START + '[branch "new"]\nremote = origin\nmerge = refs/heads/new\npushRemote = fork',
}  # fmt: skip


@pytest.mark.parametrize("what", _REDIRECTED)
def test_no_push_or_fetch_of_what_exists_goes_elsewhere(what: str) -> None:
    changes = carried(_REDIRECTED[what]).changes
    start = settings(START)
    assert not [key for key in changes if key in start]
    assert not [key for key in changes if key.startswith(b"branch.")]
    assert carried(_REDIRECTED[what]).kept


_URLS_REFUSED = (
    "ext::sh -c x", "ext::sh", "-oProxyCommand=x", "--upload-pack=x", "ssh://-oProxyCommand=x/y",
    "user@-oProxyCommand=x:y", "host:-x", "ssh://host/-x", "/srv/x.git", "../x", "file:///srv/x",
    "x", "fd::17", "https://host", "https://host/", "https://a@b@host/x", "https://host/a/../b",
    "https://ho\\st/x", "transport::https://host/x", "https://host/x y", "host:", "::1:x",
    "https://host//x", "-host:x", "javascript:x/../y", "https://host/%2e%2e/x",
)  # fmt: skip


@pytest.mark.parametrize("url", _URLS_REFUSED)
def test_a_new_remote_is_refused_if_its_address_is_not_plain(url: str) -> None:
    text = f'[remote "new"]\nurl = "{url}"\n'.replace("\\", "\\\\") + _FETCH
    found = carried(START + text)
    assert found == Carried({}, (b"remote.new.fetch", b"remote.new.url"))


@pytest.mark.parametrize(
    "text",
    [
        '[remote "new"]\nurl = https://x.net/x\nurl = https://y.net/x\n' + _FETCH,
        '[remote "new"]\nurl = https://x.net/x\nfetch = +refs/heads/*:refs/heads/*',
        '[remote "new"]\nurl = https://x.net/x\nfetch = +refs/*:refs/remotes/new/*',
        '[remote "new"]\nurl = https://x.net/x\nfetch = main:refs/remotes/new/main',
        '[remote "new"]\nurl = https://x.net/x\npushurl = https://y.net/x\n' + _FETCH,
        '[remote "new"]\nurl = https://x.net/x\nuploadpack = x\n' + _FETCH,
        '[remote "new"]\nurl = https://x.net/x\nvcs = x\n' + _FETCH,
        '[remote "new"]\nurl = https://x.net/x\n',
        '[remote "a/b"]\nurl = https://x.net/x\nfetch = +refs/heads/*:refs/remotes/a/b/*',
        '[remote "-a"]\nurl = https://x.net/x\nfetch = +refs/heads/*:refs/remotes/-a/*',
        '[remote "."]\nurl = https://x.net/x\nfetch = +refs/heads/*:refs/remotes/./*',
    ],
)
def test_a_new_remote_with_more_than_an_address_is_refused(text: str) -> None:
    assert carried(START + text).changes == {}


@pytest.mark.parametrize(
    "named",
    [
        "[remote]\npushDefault = new", '[branch "x"]\nremote = new\nmerge = refs/heads/x',
        '[branch "x"]\npushRemote = new', "[remotes]\nall = origin new",
        '[remote "new"]\nprune = true', "[checkout]\ndefaultRemote = new",
    ],
)  # fmt: skip
def test_a_new_remote_must_not_have_a_name_that_the_settings_mention(named: str) -> None:
    text = '[remote "new"]\nurl = https://example.net/x.git\n' + _FETCH
    start = START + named + "\n"
    assert carried(start + text, start, start).changes == {}
    own = Versions(settings(START), settings(START), settings(START), settings(START + text))
    assert carry_over(own).changes
    assert not carry_over(own._replace(named=frozenset({b"new"}))).changes


def test_origin_is_a_new_remote_only_if_there_is_no_other() -> None:
    """Git would choose it for branches without an upstream."""
    origin = (
        '[remote "origin"]\nurl = https://example.net/x\n'
        "fetch = +refs/heads/*:refs/remotes/origin/*\n"
    )
    other = '[remote "up"]\nurl = https://example.org/x\n'
    for start, is_carried in (("", True), (other, False)):
        before = settings(start)
        versions = Versions(before, before, before, settings(start + origin))
        assert bool(carry_over(versions).changes) is is_carried


def test_a_deleted_branch_is_forgotten_with_its_upstream() -> None:
    without = START.replace('[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n', "")
    assert carried(without).changes == {b"branch.main.remote": (), b"branch.main.merge": ()}
    local = START.replace("remote = origin", "remote = .")
    assert carried(without, local, local).changes == carried(without).changes
    # It cannot come back with another upstream.
    again = without + '[branch "main"]\nremote = fork\nmerge = refs/heads/main\n'
    assert carried(again, without, without).changes == {}


def test_a_remote_and_an_upstream_of_the_session_can_be_removed_again() -> None:
    remote = '[remote "new"]\nurl = https://example.net/x.git\n' + _FETCH
    branch = '[branch "new"]\nremote = fork\nmerge = refs/heads/new\n'
    for text in (remote, branch):
        there = settings(START + text)
        versions = Versions(settings(START), there, there, settings(START))
        added = frozenset(there.keys() - settings(START).keys())
        assert carry_over(versions).changes == {}  # the person's
        gone = carry_over(versions._replace(carried=added))
        assert gone == Carried(dict.fromkeys(sorted(added), ()), ())


def test_a_change_outside_wins() -> None:
    new = '[branch "new"]\nremote = {}\nmerge = refs/heads/new\n'
    inside, outside = START + new.format("origin"), START + new.format("fork")
    assert carried(inside, outside).changes == {}
    gone = START.replace('[branch "main"]\n\tremote = origin', '[branch "main"]\n\tremote = fork')
    deleted = START.replace('[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n', "")
    assert carried(deleted, gone).changes == {}
    assert carried(START, gone).changes == {}
    assert carried("[core]\nsparseCheckout = true\n" + START, START, START).changes


# Deferred, because git lists them: only the worker that needs them starts it.
_KEYS = st.deferred(
    lambda: st.sampled_from(
        sorted(
            settings(
                "\n".join(
                    [
                        START,
                        *_REDIRECTED.values(),
                        *(_spellings(*each)["plain"] for each in _REFUSED),
                        *_CARRIED,
                    ]
                )
            )
        )
    )
)
_VALUES = st.sampled_from(
    [
        b"true", b"false", b"0", b"origin", b"fork", b"new", b".", b"refs/heads/main", b"!x",
        b"https://example.org/team/lib.git", b"https://example.net/x", b"ext::x", b"../x",
        b"+refs/heads/*:refs/remotes/new/*",
    ]
)  # fmt: skip
_SETTINGS = st.dictionaries(_KEYS, st.lists(_VALUES, min_size=1, max_size=2).map(tuple))
_MAY_LEAVE = {
    b"branch": {b"remote", b"merge"}, b"remote": {b"url", b"fetch"},
    b"submodule": {b"active", b"url"}, b"core": {b"sparsecheckout", b"sparsecheckoutcone"},
    b"lfs": {b"repositoryformatversion"},
}  # fmt: skip


@given(first=_SETTINGS, equal=_SETTINGS, outside=_SETTINGS, inside=_SETTINGS)
def test_only_a_few_settings_leave_whatever_the_versions_are(
    first: Settings, equal: Settings, outside: Settings, inside: Settings
) -> None:
    changes, kept = carry_over(Versions(first, equal, outside, inside))
    for key, values in changes.items():
        section, variable = key.split(b".")[0], key.rpartition(b".")[2]
        assert variable in _MAY_LEAVE[section] or values == ()
        assert outside.get(key, ()) == equal.get(key, ()), "a change outside wins"
        assert inside.get(key, ()) == values
        if section == b"remote":
            assert key not in first
            assert key not in outside
        if section == b"branch" and values:
            assert key not in first
            assert key not in outside
        if variable == b"remote" and values != ():
            assert values == (b".",) or b"remote.%s.url" % values[0] in first
    after: Mapping[bytes, tuple[bytes, ...]] = {**outside, **changes}
    after = {key: values for key, values in after.items() if values}
    assert not {*kept} & {*changes}
    again = carry_over(Versions(first, after, after, {**inside, **after, **changes}))
    assert not {*again.changes} & {*changes}


@given(_SETTINGS)
def test_settings_that_did_not_change_inside_are_never_touched(same: Settings) -> None:
    assert carry_over(Versions({}, same, {}, same)) == Carried({}, ())


_TRICKY = st.dictionaries(
    st.sampled_from([b"a.b", b'a.x"y\\.b', b"a.c.d", b"core.bare", b"a.\xff .e"]),
    st.lists(
        st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=9)
        .map(str.encode),
        max_size=3,
    ).map(tuple),
)  # fmt: skip


@given(before=_TRICKY, after=_TRICKY)
def test_an_edit_is_what_git_reads_then(
    tmp_path_factory: pytest.TempPathFactory, before: Settings, after: Settings
) -> None:
    scratch = str(tmp_path_factory.getbasetemp()).encode()
    first = edit_settings(b"# kept", before, scratch)
    text = edit_settings(first, after, scratch)
    wanted = {**before, **after}
    assert list_settings(text) == {key: values for key, values in wanted.items() if values}
    assert text.startswith(b"# kept\n")


@pytest.mark.parametrize(
    "text", [b"[core", b"[a]\nb = \"x\n", b'["' + b"x" * 70_000 + b'"]', b"\0"]
)  # fmt: skip
def test_a_text_that_git_cannot_read_is_an_error(text: bytes) -> None:
    with pytest.raises(BadSettings):
        list_settings(text)


def test_a_list_that_explodes_is_an_error() -> None:
    """Git prints the name of the section in each line."""
    with pytest.raises(BadSettings):
        list_settings(b'[a "' + b"x" * 100_000 + b'"]\n' + b"b\n" * 50_000)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://example.org/a/b/c.git", ("https", "example.org", "a/b")),
        ("https://token@EXAMPLE.org:8443/a/c", ("https", "example.org:8443", "a")),
        ("ssh://git@example.org/a/c", ("ssh", "example.org", "a")),
        ("git@example.org:a/c.git", ("ssh", "example.org", "a")),
        ("example.org:/a/c", ("ssh", "example.org", "a")),
        ("git@example.org:c", ("ssh", "example.org", "")),
    ],
)
def test_an_address_has_a_host_and_an_owner(url: str, where: tuple[str, str, str]) -> None:
    found = address_of(url.encode())
    assert found is not None
    assert found[:3] == tuple(each.encode() for each in where)


_SUBMODULE = """
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	worktree = ../../../lib
[remote "origin"]
	url = https://example.org/team/lib
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
"""


def test_settings_of_a_new_submodule_are_those_that_git_writes() -> None:
    assert checkout_of_submodule(settings(_SUBMODULE)) == b"../../../lib"
    refused = [each for each in _REFUSED if each[:3] != ("core", "", "worktree")]
    for each in refused:
        allowed = (each[0], each[2]) in (("submodule", "url"), ("submodule", "active"))
        text = _SUBMODULE + _spellings(*each)["plain"]
        if each[2] in ("repositoryformatversion", "merge") or allowed:
            continue  # they run nothing in a repository that is new
        assert checkout_of_submodule(settings(text)) is None, each
    assert checkout_of_submodule(settings("[core]\nbare = false")) is None
