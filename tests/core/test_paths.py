from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core import paths
from rootsd.core.paths import PathError, RefusedPlaces, contains, normalize_path
from support.core_samples import HOME, PLACES

components = st.binary(min_size=1, max_size=8).filter(
    lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b"..")
)
normal = st.lists(components, max_size=5).map(lambda parts: b"/" + b"/".join(parts))
letters = st.lists(st.sampled_from([b"a", b"ab", b"a-b"]), max_size=4).map(
    lambda parts: b"/" + b"/".join(parts)
)


@given(normal, st.data())
def test_normalize_path_removes_only_empty_components(path: bytes, data: st.DataObject) -> None:
    slashes = st.integers(1, 3).map(lambda count: b"/" * count)
    typed = b"".join(
        data.draw(slashes) + part for part in path.split(b"/") if part
    ) + data.draw(st.sampled_from([b"", b"/", b"//"]))  # fmt: skip
    assert normalize_path(typed or b"/") == path


@pytest.mark.parametrize(
    "path", [b"", b"a", b"./a", b"~/a", b"/a/../b", b"/..", b"/a/.", b"/./a", b"/a\0", b"\0"]
)
def test_a_path_that_is_not_absolute_and_normal_is_refused(path: bytes) -> None:
    with pytest.raises(PathError):
        normalize_path(path)


def test_dots_and_spaces_in_names_are_kept() -> None:
    assert normalize_path(b"/a../..b/... / c ") == b"/a../..b/... / c "


@given(letters, letters)
def test_contains_compares_components(folder: bytes, path: bytes) -> None:
    above = [part for part in folder.split(b"/") if part]
    assert contains(folder, path) is (
        [part for part in path.split(b"/") if part][: len(above)] == above
    )


@given(normal)
def test_ancestors_are_the_folders_that_contain_a_path_nearest_first(path: bytes) -> None:
    above = list(paths.ancestors(path))
    assert all(contains(folder, path) and folder != path for folder in above)
    assert above == sorted(above, key=len, reverse=True)
    assert len(above) == len([part for part in path.split(b"/") if part])
    assert not above or above[-1] == b"/"


def test_a_uri_has_no_ancestors_and_the_root_no_name() -> None:
    assert list(paths.ancestors(b"https://example.com/v1/x")) == []
    assert [paths.base_name(path) for path in (b"/", b"/a", b"/a/b ")] == [b"", b"a", b"b "]


@given(st.binary())
def test_text_of_a_path_is_lossless(path: bytes) -> None:
    text = paths.text_of(path)
    assert paths.bytes_of(text) == path
    assert paths.is_utf8(path) is not any("\ud800" <= char <= "\udfff" for char in text)


def _decoded(uri: str) -> bytes:
    """Decode a URI by hand (RFC 3986, section 2.1): a percent sign and two digits, or else the
    character itself.
    """
    out = bytearray()
    rest = uri
    while rest:
        if rest[0] == "%":
            out.append(int(rest[1:3], 16))
            rest = rest[3:]
        else:
            out.append(ord(rest[0]))
            rest = rest[1:]
    return bytes(out)


@given(normal)
def test_the_uri_of_a_path_decodes_to_the_same_bytes(path: bytes) -> None:
    uri = paths.to_uri(path)
    assert re.fullmatch(r"file:///([A-Za-z0-9._~/-]|%[0-9A-F]{2})*", uri)
    split = urlsplit(uri)
    assert (split.scheme, split.netloc, split.query, split.fragment) == ("file", "", "", "")
    assert unquote_to_bytes(split.path) == _decoded(uri.removeprefix("file://")) == path


def test_uri_of_each_byte() -> None:
    for byte in range(1, 256):
        path = b"/a" + bytes([byte]) + b"b"
        unreserved = re.fullmatch(rb"[A-Za-z0-9._~/-]", bytes([byte])) is not None
        assert paths.to_uri(path) == f"file:///a{chr(byte) if unreserved else f'%{byte:02X}'}b"


REFUSED = (
    b"/ /home /Users /tmp /mnt /media /opt /srv /Volumes /home/ann /etc /etc/app"
    b" /usr/local/src/app  /bin /sbin/x /lib /lib32/x /lib64 /libx32 /boot /dev/shm/app /proc/1"
    b" /sys /run /run/user/1000  /run/media /var /var/lib/app /var/home /var/tmp /var/folders"
    b" /root /root/app /System/x  /Library/x /Applications/x /private /private/etc /private/tmp"
    b" /private/var/folders  /home/ann/.ssh /home/ann/.ssh/app /home/ann/.gnupg"
    b" /home/ann/.aws/x /home/ann/.azure  /home/ann/.kube /home/ann/.docker /home/ann/.config"
    b" /home/ann/.config/nvim  /home/ann/.local/share/app /home/ann/.cache/x /home/ann/.mozilla"
    b" /home/ann/.password-store  /home/ann/.claude /home/ann/.claude/x /home/ann/.codex"
    b" /home/ann/.codex/worktrees-old  /home/ann/.cursor/x /home/ann/Library/x /home/ann/state"
    b" /home/ann/state/rootsd  /home/ann/state/rootsd/run /home/ann/src/app/.git"
    b" /home/ann/src/app/.git/modules/x"
).split()
ALLOWED = (
    b"/home/ann/src /home/ann/src/app /home/ann/state/other /home/ann/.config-old/x"
    b" /home/bob/src  /opt/app /srv/app /mnt/disk/app /media/ann/stick /Volumes/disk/app"
    b" /tmp/app /var/tmp/app  /var/folders/x/T/app /private/tmp/app /private/var/folders/x/app"
    b" /private/var/tmp/app  /run/media/ann/stick/app /var/home/bob/app /etcetera"
    b" /home/ann/.codex/worktrees  /home/ann/.codex/worktrees/1/app"
    b" /home/ann/.cursor/worktrees/app  /home/ann/.claude/worktrees/app /home/ann/src/app.git"
    b" /home/ann/src/.github /usrlocal/x  /home/ann-old /home/ann/.dotfiles"
).split()


def test_some_places_can_never_be_a_root_and_others_can_be_a_root_and_a_parent() -> None:
    assert [path for path in REFUSED if not PLACES.why_no_root(path)] == []
    reasons = {path: (PLACES.why_no_root(path), PLACES.why_no_parent(path)) for path in ALLOWED}
    assert reasons == dict.fromkeys(ALLOWED, (None, None))


def test_a_parent_may_be_your_home_or_hold_the_daemons_own_folders_and_not_lie_in_them() -> None:
    assert PLACES.why_no_parent(HOME) is None
    assert PLACES.why_no_root(HOME) == "it is your home folder"
    for above in (b"/home", b"/"):
        assert PLACES.why_no_parent(above) == "it contains your home folder"
    places = RefusedPlaces(HOME, (b"/srv/demo/state",))
    assert places.why_no_parent(b"/srv/demo") is None
    assert places.why_no_parent(b"/srv/demo/state/x") == "it contains rootsd's own files"
    assert places.why_no_root(b"/srv/demo") == "it contains rootsd's own files"


@pytest.mark.parametrize("home", [b"/root", b"/var/home/ann", b"/var/lib/ci", b"/usr/home/ann"])
def test_a_home_folder_inside_a_system_tree_can_contain_roots(home: bytes) -> None:
    places = RefusedPlaces(home)
    assert places.why_no_root(home + b"/src/app") is None
    assert places.why_no_root(home) == "it is your home folder"
    assert places.why_no_root(home + b"/.ssh")
    assert places.why_no_root(home.rpartition(b"/")[0] or b"/") == "it contains your home folder"


def test_the_reason_names_the_place() -> None:
    for path, why in (
        (b"/etc/app", "/etc belongs to the system"),
        (HOME + b"/.ssh/x", "/home/ann/.ssh contains secrets and settings"),
        (HOME + b"/state", "it contains rootsd's own files"),
        (HOME + b"/a/.git/b", "it lies inside a .git folder"),
        (b"/opt", "it is a place of the system, not a project"),
        (b"/srv/mine", None),
        (HOME + "/src/größe".encode(), None),
    ):
        assert PLACES.why_no_root(path) == why
    assert "UTF-8" in (PLACES.why_no_root(HOME + b"/src/\xff") or "")
    assert RefusedPlaces(HOME, (b"/srv/mine/state",)).why_no_root(b"/srv/mine")


def test_a_refused_place_covers_folders_in_it_and_above_it() -> None:
    places = PLACES._replace(refused=(HOME + b"/src/vault",))
    assert places.why_no_root(HOME + b"/src/vault") == "the configuration refuses it"
    for path in (HOME + b"/src/vault/a", HOME + b"/src"):
        assert places.why_no_root(path) == "the configuration refuses /home/ann/src/vault"
    assert places.why_no_root(HOME + b"/src/vault-old") is None
    assert places.why_no_parent(HOME + b"/src") is None
    assert places.why_no_parent(HOME + b"/src/vault/a") is not None


def test_the_configuration_can_allow_some_places_refused_by_default() -> None:
    own = HOME + b"/state/rootsd"
    places = PLACES._replace(
        allowed=(b"/", HOME + b"/.config/nvim", b"/etc/site", own), refused=(b"/srv/no",)
    )
    for path in (HOME + b"/.config/nvim", b"/etc/site/a", b"/usr/src/linux"):
        assert PLACES.why_no_root(path) is not None
        assert places.why_no_root(path) is None
    for path in (
        b"/",
        HOME,
        b"/home",
        own,
        own + b"/a",
        b"/srv/no/a",
        b"/srv/a/.git/b",
        b"/a\xff",
    ):
        assert places.why_no_root(path) is not None


ELSEWHERE = RefusedPlaces(b"/elsewhere", account_home=HOME)


@pytest.mark.parametrize("home", [b"/elsewhere", HOME])
def test_both_the_home_of_the_variable_and_that_of_the_account_are_refused(home: bytes) -> None:
    assert ELSEWHERE.why_no_root(home) == "it is your home folder"
    assert ELSEWHERE.why_no_parent(home) is None
    assert "secrets" in (ELSEWHERE.why_no_root(home + b"/.ssh/x") or "")
    assert ELSEWHERE.why_no_root(home + b"/src/api") is None
    assert home + b"/.ssh" in ELSEWHERE.refused_trees()
    assert ELSEWHERE.why_no_root(b"/home") is not None


def test_a_variable_opens_no_place_of_the_system_nor_the_home_of_the_account() -> None:
    for home in (b"/usr", b"/etc", b"/"):
        places = RefusedPlaces(home, account_home=HOME)
        assert "belongs to the system" in (places.why_no_root(home.rstrip(b"/") + b"/lib/x") or "")
    control = RefusedPlaces(b"/elsewhere")
    assert control.why_no_root(HOME) is None, "without the account, it opens the real home"
