"""How `rootsd doctor` reports what identifies a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from rootsd.core.doctor import Severity
from rootsd.core.model import Identity, MountBinding
from rootsd.disk.identity import diagnose_identity, identify

OK, WARNING, _ = Severity


def missing(path: bytes) -> NoReturn:
    raise FileNotFoundError(2, "No such file or directory")


@pytest.mark.parametrize(
    ("changes", "condition", "said"),
    [
        ({}, OK, "file handles"),
        ({"handle": None}, OK, "birth times"),
        ({"handle": None, "born_ns": None}, WARNING, "neither"),
        ({"mount": MountBinding("boot", 1, 46, b"/p")}, OK, "approvals end when it is unmounted"),
    ],
)
def test_the_diagnosis_names_what_identifies_a_folder(
    tmp_path: Path, changes: dict[str, Any], condition: Severity, said: str
) -> None:
    facts = {"handle": b"h", "born_ns": 5, **changes}

    def look(path: bytes) -> Identity:
        return replace(identify(path), **facts)

    found = diagnose_identity(bytes(tmp_path), look)
    assert found.condition is condition
    assert said in found.finding


def test_a_folder_that_cannot_be_identified_is_named() -> None:
    assert diagnose_identity(b"/x", missing).remedy == "ls -ld /x"


def test_a_hostile_name_cannot_reach_the_terminal() -> None:
    found = diagnose_identity(b"/\x1b[2J", missing)
    assert (found.finding + (found.remedy or "")).isprintable()
