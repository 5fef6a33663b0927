"""No repository address is shown with credentials."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rootsd.core.uris import without_credentials

_words = st.text(string.ascii_letters + string.digits + ".-_", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://example.org/a/b.git", "https://example.org/a/b.git"),
        ("https://ann:s3cr3t@example.org/a/b.git", "https://example.org/a/b.git"),
        ("https://s3cr3t@example.org/a", "https://example.org/a"),
        ("https://a:s3cr3t@x@example.org/a@b", "https://example.org/a@b"),
        ("https://example.org/a?token=s3cr3t#s3cr3t", "https://example.org/a"),
        ("ssh://git@example.org:22/a", "ssh://git@example.org:22/a"),
        ("ssh://git:s3cr3t@example.org/a", "ssh://git@example.org/a"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git"),
        ("git:s3cr3t@example.org:a/b.git", "git@example.org:a/b.git"),
        ("example.org:a/b.git", "example.org:a/b.git"),
        ("/srv/git/a.git", "/srv/git/a.git"),
        ("../a", "../a"),
        ("file:///srv/a", "file:///srv/a"),
        ("", ""),
    ],
)
def test_credentials_are_removed_and_the_address_stays(address: str, shown: str) -> None:
    assert without_credentials(address) == shown


@given(
    scheme=st.sampled_from(["https", "http", "ftp", "ssh", "git", "svn+ssh", "HTTPS"]),
    user=_words, host=_words, path=_words,
)  # fmt: skip
def test_no_password_is_left(scheme: str, user: str, host: str, path: str) -> None:
    secret = "S3CR3T!"  # noqa: S105 - made up
    for address in (
        f"{scheme}://{user}:{secret}@{host}/{path}",
        f"{scheme}://{host}/{path}?{user}={secret}",
        f"{scheme}://{host}/{path}#{secret}",
        f"{user}:{secret}@{host}:{path}",
    ):
        shown = without_credentials(address)
        assert secret not in shown
        assert host in shown
        assert path in shown


@given(st.text(max_size=80))
@example("0 ?")
def test_removing_credentials_accepts_any_text_and_is_idempotent(text: str) -> None:
    once = without_credentials(text)
    assert len(once) <= len(text)
    assert without_credentials(once) == once
