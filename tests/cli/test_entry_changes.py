"""What is said about a client entry agrees with the roots that it got from 0.1.0 and gets now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.cli.entry_changes import EntryChange, PublishedFacts, change_since_0_1_0
from rootsd.core.model import Access, Focus, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.paths import contains
from rootsd.core.scope import Scope, ScopeExtent, SessionStart, apply_focus, apply_scope
from rootsd.proxy.run.options import parse_arguments
from rootsd.proxy.run.roots import RootFolder, RootsFilter

NO_FACTS = PublishedFacts({})
ROOTSD = "/home/ann/.local/bin/rootsd"
SERVER = ("--", "npx", "server")


def change(*words: str, facts: PublishedFacts = NO_FACTS) -> EntryChange | None:
    return change_since_0_1_0((ROOTSD, *words), facts)


@pytest.mark.parametrize(
    "words",
    [
        ("bridge",),
        ("bridge", "--client", "an editor", "--any-uri"),
        ("bridge", "--only", "tag:work", "--only", "api"),
        ("run", "--client-roots", "override", *SERVER),
        ("run", "--client-roots=narrow", "--only", "api", *SERVER),
        ("status",),
        (),
    ],
)
def test_an_entry_without_a_difference_is_not_mentioned(words: tuple[str, ...]) -> None:
    assert change(*words) is None


@pytest.mark.parametrize(
    "flags", [("--workspace",), ("--all",), ("--confine", "--no-network"), ("--no-confine",)]
)
def test_an_entry_with_a_newer_flag_is_not_mentioned(flags: tuple[str, ...]) -> None:
    assert change("run", *flags, *SERVER) is None


@pytest.mark.parametrize(
    ("words", "more", "less"),
    [
        (("run", *SERVER), "worktrees of that root", "in a project that is not approved"),
        (("run", "--only", "tag:work", *SERVER), "all roots that --only selects", ""),
        (("run", "--client-roots", "narrow", *SERVER), "", "outside the workspace"),
        (("run", "--only", "api", *SERVER), "the whole root", ""),
        (("run", "--client-roots=auto", "--only", "api", *SERVER), "", "no folder open any more"),
        (("bridge", "--only", "cwd"), "", "no larger root"),
        (("bridge", "--only=focus"), "the tag of the focus", ""),
    ],
)
def test_a_difference_is_named(words: tuple[str, ...], more: str, less: str) -> None:
    found = change(*words)
    assert found is not None
    assert more in " ".join(found.more)
    assert less in " ".join(found.less)
    assert bool(found.more) == bool(more)
    assert bool(found.less) == bool(less)


def test_a_name_that_looked_like_another_one_selects_nothing() -> None:
    facts = PublishedFacts({"café": "café~r7k2"})
    found = change("bridge", "--only", "café", facts=facts)
    assert found == EntryChange(less=("no root with the name café: its name is now café~r7k2",))
    assert change("bridge", "--only", "api", facts=facts) is None


def test_a_placeholder_with_a_changed_name_stands_for_no_root() -> None:
    facts = PublishedFacts({"café": "café~r7k2"})
    words = ("run", "--client-roots", "override", "--", "server", "--vault={root:café}")
    found = change(*words, facts=facts)
    assert found == EntryChange(less=("no root with the name café: its name is now café~r7k2",))
    assert change(*words) is None


def test_the_focus_matters_only_where_it_narrowed() -> None:
    facts = PublishedFacts({}, focus="work")
    narrow = ("run", "--client-roots", "narrow", *SERVER)
    found = change(*narrow, facts=facts)
    assert found is not None
    assert "the tag of the focus" in " ".join(found.more)
    for words in (("bridge",), ("run", "--client-roots", "override", *SERVER)):
        assert change(*words, facts=facts) is None


def test_a_root_with_a_colon_is_left_out_of_a_joined_variable() -> None:
    facts = PublishedFacts({}, with_colon=("a:b",))
    words = ("run", "--client-roots", "override", "--env", "ROOTS={roots}", *SERVER)
    found = change(*words, facts=facts)
    assert found == EntryChange(less=("not a:b in ROOTS: its path has a colon",))
    assert change(*words) is None


def test_a_required_wall_confines_each_run_proxy() -> None:
    facts = PublishedFacts({}, wall="the policy requires the wall (/etc/rootsd/policy.toml)")
    found = change("run", "--client-roots", "override", *SERVER, facts=facts)
    assert found is not None
    assert "runs behind the wall (the policy requires the wall" in " ".join(found.less)
    assert change("bridge", facts=facts) is None


# The rest compares the sentences with the roots themselves, for all options.

PATHS = (b"/w/api", b"/w/api/inner", b"/w/lib", b"/w/lib-fix", b"/w/web")
UNAPPROVED = b"/w/other"
FOLDERS = (*PATHS, b"/w/api/deep", UNAPPROVED, b"/home")


@dataclass(frozen=True)
class Situation:
    """A working directory, the client's folders, the focus, and the roots at two moments.

    `closed` says that the client has closed its folders.
    """

    cwd: bytes
    theirs: tuple[bytes, ...] | None
    closed: bool
    focus: str | None
    start: tuple[PublishedRoot, ...]
    now: tuple[PublishedRoot, ...]


def root_at(path: bytes, tags: Sequence[str]) -> PublishedRoot:
    main = b"/w/lib" if path == b"/w/lib-fix" else None
    name = path.rpartition(b"/")[2].decode()
    return PublishedRoot(path, name, ProjectKind.GIT, Access.READ_WRITE, tuple(tags), main)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    tags = st.lists(st.sampled_from(["work", "go"]), unique=True, max_size=2)
    start = tuple(root_at(path, draw(tags)) for path in draw(st.sets(st.sampled_from(PATHS))))
    now = tuple(root for root in start if draw(st.integers(0, 4)))
    theirs = st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=2, unique=True).map(tuple)
    return Situation(
        draw(st.sampled_from(FOLDERS)),
        draw(st.none() | theirs),
        draw(st.booleans()),
        draw(st.none() | st.just("work")),
        start,
        now,
    )


def options() -> st.SearchStrategy[tuple[str, ...]]:
    only = st.lists(
        st.sampled_from(["api", "web", "tag:work", "tag:go", "cwd"]), unique=True, max_size=2
    )
    use = st.sampled_from(
        [(), *(("--client-roots", each) for each in ("auto", "narrow", "override"))]
    )
    return st.tuples(only, use).map(
        lambda pair: (*(word for each in pair[0] for word in ("--only", each)), *pair[1])
    )


def innermost(roots: Iterable[PublishedRoot], path: bytes) -> PublishedRoot | None:
    around = [root for root in roots if contains(root.path, path)]
    return max(around, key=lambda root: len(root.path), default=None)


def intersection(roots: Sequence[PublishedRoot], theirs: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in theirs:
        if innermost(roots, path) is not None:
            found.add(path)
        else:
            found |= {root.path for root in roots if contains(path, root.path)}
    return found


def roots_of_0_1_0(words: Sequence[str], case: Situation) -> set[bytes]:
    """Return the folders that the run proxy of 0.1.0 gave its server.

    This is its code in core/scope.py and relay/narrowing.py, in a few lines.
    """
    parsed = parse_arguments([*words, *SERVER])
    names = {word for word in parsed.only if word != "cwd" and not word.startswith("tag:")}
    tags = {word[4:] for word in parsed.only if word.startswith("tag:")}
    holding = innermost(case.now, case.cwd) if "cwd" in parsed.only else None
    if not parsed.only and case.focus is not None:
        tags = {case.focus}
    fit = [
        root
        for root in case.now
        if not (parsed.only or tags)
        or root is holding
        or root.name in names
        or tags & set(root.tags)
    ]
    use = words[words.index("--client-roots") + 1] if "--client-roots" in words else "auto"
    if use != "override":
        if case.theirs is not None and not case.closed:
            return intersection(fit, case.theirs)
        if use == "narrow":
            return set()
        if (here := innermost(fit, case.cwd)) is not None:
            return {here.path}
    return {root.path for root in fit}


def roots_now(words: Sequence[str], case: Situation) -> set[bytes]:
    """Return the folders that the run proxy gives its server now."""
    parsed = parse_arguments([*words, *SERVER])
    is_workspace = not parsed.only and parsed.client_roots.value != "override"
    anchor = innermost(case.start, case.cwd)
    known = UNAPPROVED if contains(UNAPPROVED, case.cwd) else None
    scope = Scope(
        frozenset(word for word in parsed.only if word != "cwd" and not word.startswith("tag:")),
        frozenset(word[4:] for word in parsed.only if word.startswith("tag:")),
        case.cwd if is_workspace or "cwd" in parsed.only else None,
        extent=ScopeExtent.WORKSPACE if is_workspace else ScopeExtent.ROOT,
        start=SessionStart(anchor.path if anchor else known),
    )
    focused = apply_focus(scope, Focus(case.focus), Focus(case.focus))
    published = apply_scope(PublishedSet(1, case.now), focused).roots
    narrowing = RootsFilter(parsed.client_roots, parsed.access, case.cwd)
    if case.theirs is not None:
        narrowing.set_client_folders(case.theirs)
        if case.closed:
            narrowing.set_client_folders(())
    given = narrowing.apply(RootFolder(root.path, root.name) for root in published)
    return {folder.path for folder in given}


def exceeds(these: set[bytes], those: set[bytes]) -> bool:
    """Return whether a folder of `these` is in none of `those`."""
    return any(not any(contains(other, one) for other in those) for one in these)


@given(options(), situations())
def test_each_difference_in_the_roots_is_announced(
    words: tuple[str, ...], case: Situation
) -> None:
    before, now = roots_of_0_1_0(words, case), roots_now(words, case)
    facts = PublishedFacts({}, focus=case.focus)
    found = change("run", *words, *SERVER, facts=facts) or EntryChange()
    if exceeds(now, before):
        assert found.more, (words, case, before, now)
    if exceeds(before, now):
        assert found.less, (words, case, before, now)


def test_control_the_comparison_notices_both_directions() -> None:
    roots = (root_at(b"/w/api", ["work"]), root_at(b"/w/web", ["work"]))
    inside = Situation(b"/w/api", None, closed=False, focus=None, start=roots, now=roots)
    assert exceeds(roots_now((), inside), roots_of_0_1_0((), inside))
    unapproved = replace(inside, cwd=UNAPPROVED)
    assert exceeds(roots_of_0_1_0((), unapproved), roots_now((), unapproved))
