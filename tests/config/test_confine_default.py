"""The default of `rootsd run` for the wall, from `config.toml`."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path

import pytest

from rootsd.config.wall_default import config_file, confines_by_default
from rootsd.core.errors import BadConfig
from rootsd.places.daemon_folders import find_places
from rootsd.service import start_record


@pytest.fixture
def config(rootsd_dir: Path) -> Path:
    (rootsd_dir / "config").mkdir(parents=True)
    return rootsd_dir / "config" / "config.toml"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", False),
        ("[confine]\n", False),
        ("[confine]\ndefault = false\n", False),
        ("[confine]\ndefault = true\n", True),
        ("confine.default = true\n", True),
        ("confine = { network = false, default = true }\n", True),
        ("['confine']\n'default' = true\n", True),
        ('["c\\u006fnfine"]\n"d\\u0065fault" = true\n', True),
        ("# [confine]\n# default = true\n", False),
        ("[sessions]\ndefault = true\n", False),
        ("this is not TOML", False),  # it does not mention the wall
    ],
)
def test_the_answer_is_the_one_key(config: Path, text: str, answer: object) -> None:
    config.write_text(text)
    assert confines_by_default() is answer


def test_without_a_file_nothing_is_confined(rootsd_dir: Path) -> None:
    assert not confines_by_default()


@pytest.mark.parametrize(
    "content",
    [
        b"[confine]\ndefault = 1\n",
        b"[confine]\ndefault = 'true'\n",
        b"[confine]\ndefault = true\ndefault = false\n",
        b"[[confine]]\ndefault = true\n",
        b"[confine\n",
        b"[confine]\n# \xff\n",
        b"#" * (1 << 20) + b"\n[confine]\ndefault = true\n",
        b"confine = " + b"[" * 10_000,
    ],
)
def test_an_invalid_file_is_an_error(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(BadConfig, match="cannot tell whether") as refused:
        confines_by_default()
    assert "--no-confine" in refused.value.remedy


def test_something_else_in_the_place_of_the_file_is_an_error(config: Path) -> None:
    os.mkfifo(config)
    with pytest.raises(BadConfig, match="regular"):
        confines_by_default()


def test_the_file_is_the_one_that_the_daemon_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon of the record decides; without one, the daemon that would start now."""
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    record = tmp_path / ".local" / "state" / "rootsd" / "start.json"
    record.parent.mkdir(0o700, parents=True)
    for here, recorded in product(("", "/a"), (None, "", "/b", "relative")):
        record.unlink(missing_ok=True)
        monkeypatch.setenv("XDG_CONFIG_HOME", here)
        expected = find_places().config_file
        if recorded is not None:
            places = {"XDG_CONFIG_HOME": recorded}
            record.write_text(json.dumps({"command": ["x"], "environment": places, "log": "/l"}))
            record.chmod(0o600)
            monkeypatch.setenv("XDG_CONFIG_HOME", "")
            expected = find_places(start_record.recorded_places()).config_file
            monkeypatch.setenv("XDG_CONFIG_HOME", here)
        assert config_file() == expected, (here, recorded)
