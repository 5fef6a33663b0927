from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.uris import UriError, looks_like_uri, normalize_uri, owner_of, without_credentials


@pytest.mark.parametrize(
    ("typed", "uri"),
    [
        ("https://api.example.com/v1", None),
        ("HTTPS://API.Example.com/V1?q=A", "https://api.example.com/V1?q=A"),
        ("https://example.com", None),
        ("ssh://git@example.com:22/a.git", None),
        ("SSH://Git@Example.com/a", "ssh://Git@example.com/a"),
        ("s3://bucket/key%20with/space", None),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("https://a/..b/c..", None),
    ],
)
def test_a_plain_uri_is_normalized(typed: str, uri: str | None) -> None:
    assert normalize_uri(typed) == (uri or typed)
    assert normalize_uri(normalize_uri(typed)) == normalize_uri(typed)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("file:///etc/passwd", "by its path"),
        ("FILE://localhost/etc", "by its path"),
        ("roots://approved", "cannot be a root"),
        ("javascript://x/%0aalert(1)", "cannot be a root"),
        ("https:///v1", "form"),
        ("https://", "form"),
        ("mailto:ann@example.com", "form"),
        ("https://ann:secret@example.com/", "password"),
        ("https://example.com/a/../b", "clients resolve"),
        ("https://example.com/a/%2e%2E/b", "clients resolve"),
        ("https://example.com/.%2e", "clients resolve"),
        ("https://example.com/.", "clients resolve"),
        ("https://example.com/#a", "fragment"),
        ("https://example.com/a b", "character"),
        ("https://example.com/\n", "character"),
        ("https://example.com/\x1b[m", "character"),
        ("https://example.com/\u202e", "character"),
        ("https://exämple.com/", "character"),
        ("https://example.com/%zz", "character"),
        ("https://example.com:port/", "form"),
        ("https://-example.com/", "form"),
        ("https://example.com/" + "a" * 2048, "longer"),
        ("1https://example.com", "form"),
        ("", "form"),
    ],
)
def test_an_ambiguous_uri_is_refused(typed: str, why: str) -> None:
    with pytest.raises(UriError, match=why):
        normalize_uri(typed)


@given(st.from_regex(r"[a-z]{1,5}://[ -~]{0,30}", fullmatch=True))
def test_an_accepted_uri_is_ascii_and_python_parses_it_alike(text: str) -> None:
    try:
        uri = normalize_uri(text)
    except UriError:
        return
    assert re.fullmatch(r"[!-~]+", uri)
    assert urlsplit(uri).geturl().rstrip("?") == uri.rstrip("?")
    assert urlsplit(uri).hostname


def test_paths_do_not_look_like_uris() -> None:
    for path in ("/a", "./https://x", "a/b", "C:/a", "~/a", "", "://a", "ä://b"):
        assert not looks_like_uri(path)
    assert looks_like_uri("FILE:///a")


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("https://ann:secret@GitHub.com/acme/api.git", "github.com/acme"),
        ("git@github.com:acme/api.git", "github.com/acme"),
        ("ssh://git@example.org:22/acme/api", "example.org/acme"),
        ("https://gitlab.com/group/sub/api/", "gitlab.com/group/sub"),
        ("https://example.org/api.git", "example.org"),
        ("example.org:api", "example.org"),
        ("/srv/git/api.git", "/srv/git"),
        ("file:///srv/git/api.git", "/srv/git"),
        ("../api", ".."),
        ("api", ""),
        ("https://", ""),
        ("", ""),
    ],
)
def test_the_owner_of_a_repository_is_the_place_above_it(address: str, owner: str) -> None:
    assert owner_of(without_credentials(address)) == owner


@given(st.text())
def test_any_address_has_an_owner_without_its_last_name(address: str) -> None:
    assert len(owner_of(without_credentials(address))) <= len(address.casefold()) * 3
