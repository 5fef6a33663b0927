"""Which of the approved roots a server gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.paths import contains
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.proxy.run.roots import RootFolder, RootsFilter

AUTO, NARROW, REPORT = (ClientRootsPolicy.AUTO, ClientRootsPolicy.NARROW, ClientRootsPolicy.REPORT)
API, WEB = RootFolder(b"/src/api", "api"), RootFolder(b"/src/web", "web")
READ = RootFolder(b"/src/read", "read", writable=False)
INNER = RootFolder(b"/src/api/inner", "inner")


def told(
    *approved: RootFolder,
    use: ClientRootsPolicy = AUTO,
    access: AccessPolicy = AccessPolicy.WRITABLE,
    here: bytes | None = None,
    theirs: tuple[bytes, ...] | None = None,
) -> list[str]:
    roots_filter = RootsFilter(use, access, here)
    roots_filter.client_folders = theirs
    return [folder.text for folder in roots_filter.apply(approved)]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ((b"/src/api",), ["/src/api"]),
        ((b"/src",), ["/src/api", "/src/web"]),
        ((b"/",), ["/src/api", "/src/web"]),
        ((b"/src/api/deep/er",), ["/src/api/deep/er"]),
        ((b"/src/api-old",), []),
        ((b"/elsewhere",), []),
        ((b"/elsewhere", b"/src/web"), ["/src/web"]),
        ((b"/src/web", b"/src"), ["/src/web", "/src/api"]),
    ],
)
@pytest.mark.parametrize("use", [AUTO, NARROW])
def test_the_clients_folders_narrow(
    use: ClientRootsPolicy, theirs: tuple[bytes, ...], expected: list[str]
) -> None:
    assert told(API, WEB, use=use, here=b"/src/web", theirs=theirs) == expected


def test_a_folder_in_a_root_is_named_by_its_relative_path() -> None:
    roots_filter = RootsFilter(AUTO, AccessPolicy.WRITABLE, None)
    roots_filter.client_folders = (b"/src/api/inner/x", b"/src/api/y")
    assert [each.name for each in roots_filter.apply([API, INNER])] == ["inner/x", "api/y"]


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (b"/src/api", ["/src/api", "/src/web"]),
        (b"/src/web/deep", ["/src/web", "/src/api"]),
        (b"/src", ["/src/api", "/src/web"]),
        (b"/", ["/src/api", "/src/web"]),
        (None, ["/src/api", "/src/web"]),
    ],
)
def test_without_useful_folders_the_root_of_the_working_directory_comes_first(
    here: bytes | None, expected: list[str]
) -> None:
    assert told(API, WEB, here=here) == expected


def test_narrow_leaves_nothing_without_client_folders() -> None:
    for theirs in (None, ()):
        assert told(API, WEB, use=NARROW, here=b"/src/api", theirs=theirs) == []


def test_the_client_folders_narrow_only_if_they_should() -> None:
    assert told(API, WEB, use=REPORT, theirs=(b"/src/api",)) == ["/src/api", "/src/web"]
    assert told(API, WEB, use=REPORT, here=b"/src/web") == ["/src/web", "/src/api"]


@pytest.mark.parametrize("theirs", [None, (b"/src/read",), (b"/src/read/deep",), (b"/src",)])
def test_read_only_roots_are_withheld_without_advisory_access(
    theirs: tuple[bytes, ...] | None,
) -> None:
    assert "/src/read" not in "".join(told(API, READ, theirs=theirs))
    assert "/src/read" in "".join(told(API, READ, theirs=theirs, access=AccessPolicy.ADVISORY))


def test_an_unrelated_folder_is_outside() -> None:
    roots_filter = RootsFilter(AUTO, AccessPolicy.WRITABLE, None)
    roots_filter.client_folders = (b"/src", b"/src/api/x", b"/src/api-old", b"/else")
    assert roots_filter.outside([API]) == (b"/src/api-old", b"/else")


PATHS = st.lists(st.sampled_from([b"a", b"b", b"ab"]), min_size=1, max_size=4).map(
    lambda parts: b"/" + b"/".join(parts)
)


@given(
    st.lists(st.builds(RootFolder, PATHS, st.just("x"), st.booleans()), max_size=5),
    st.none() | st.lists(PATHS, max_size=4).map(tuple),
    st.none() | PATHS,
    st.sampled_from(ClientRootsPolicy),
    st.sampled_from(AccessPolicy),
)
def test_client_folders_never_add_a_root(
    approved: list[RootFolder],
    theirs: tuple[bytes, ...] | None,
    here: bytes | None,
    use: ClientRootsPolicy,
    access: AccessPolicy,
) -> None:
    roots_filter = RootsFilter(use, access, here)
    roots_filter.client_folders = theirs
    for folder in roots_filter.apply(approved):
        assert any(
            contains(root.path, folder.path) and (root.writable or access is AccessPolicy.ADVISORY)
            for root in approved
        )
