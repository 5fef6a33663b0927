"""The fingerprint of a directory: equal for equal identities, different for all others."""

from __future__ import annotations

from msgspec.structs import replace

from rootsd.core.encoding import identity_fingerprint
from rootsd.core.model import GitEntry
from support.sample_decisions import identity


def test_each_identity_has_its_own_fingerprint() -> None:
    known = identity(7)
    others = [
        identity(8),
        replace(known, owner=known.owner + 1),
        replace(known, handle=b"other"),
        replace(known, born_ns=1),
        replace(known, git=GitEntry.FILE),
        replace(known, git=GitEntry.FILE, git_target=identity(9)),
    ]
    marks = {identity_fingerprint(each) for each in (known, *others)}
    assert identity_fingerprint(replace(known)) in marks
    assert len(marks) == 1 + len(others)
    assert all(mark.isalnum() and len(mark) == 32 for mark in marks)


def test_no_identity_has_an_empty_fingerprint() -> None:
    assert identity_fingerprint(None) == ""
