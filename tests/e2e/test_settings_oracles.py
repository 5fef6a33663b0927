"""Edited settings files, read by the parsers that clients use.

jsonc-parser is the one of VS Code, and `yaml` is the usual one of Node.js programs. The parser of
TOML in the standard library is the oracle in tests/settings/test_formats.py.
"""

from __future__ import annotations

import json
import subprocess
from copy import deepcopy
from typing import Any

import pytest

from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import JsonFormat, SettingsFormat, YamlFormat
from support.node_packages import node, program
from support.settings_texts import make
from support.sizes import Sizes

HANG_GUARD_S = 120
FORMATS: dict[str, SettingsFormat] = {"json": JsonFormat(), "yaml": YamlFormat()}
OURS = {"command": "/opt/a \u00e9 'b'", "args": ["bridge", "yes", "// # ", ""], "enabled": True}

pytestmark = pytest.mark.needs("npm")


def read_by_oracle(language: str, texts: list[str]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps({"language": language, "text": text}) + "\n" for text in texts)
    done = subprocess.run(
        [node(), program("settings_oracle.mjs")],
        input=lines,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


@pytest.mark.parametrize("language", FORMATS)
def test_other_parsers_find_our_entry_and_the_values_of_the_person(
    language: str, sizes: Sizes
) -> None:
    count = sizes.pick(test=60, check=1_000, soak=3_000)
    texts, expected = [], []
    for seed in range(count):
        file = make(language, seed)
        texts.append(file.text)
        expected.append(file.values)
        try:
            after, _ = FORMATS[language].insert(file.text, file.keys, "rootsd", OURS)
        except NotEditable:
            continue  # the person gets lines to paste
        values = deepcopy(file.values)
        target = values
        for key in file.keys:
            target = target.setdefault(key, {})
        target["rootsd"] = OURS
        texts.append(after)
        expected.append(values)
    assert len(texts) > 1.5 * count, "most files are edited"
    found = read_by_oracle(language, texts)
    for text, ours, theirs in zip(texts, expected, found, strict=True):
        assert theirs == ours, repr(text)


@pytest.mark.parametrize("language", FORMATS)
def test_an_oracle_finds_a_wrong_value(language: str) -> None:
    file = make(language, 0)
    assert read_by_oracle(language, ['{"a": 1}']) != [{"a": 2}]
    with pytest.raises(AssertionError):
        read_by_oracle(language, [file.text + "\n]"])
