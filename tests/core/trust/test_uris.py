"""A path as a URI gives exactly the same path in Python, the SDK, and Node."""

from __future__ import annotations

import json
import random
import subprocess
from urllib.parse import unquote_to_bytes

import pytest
from mcp_types import Root

from rootsd.core.paths import is_utf8, normalize_path, to_uri
from support.sizes import Sizes

_HANG_GUARD = 600
_DECODED_BY_NODE = """
const {fileURLToPath} = require('url');
const lines = require('fs').readFileSync(0, 'utf8').trimEnd().split('\\n');
const decoded = lines.map(line => {
  try { return Buffer.from(fileURLToPath(JSON.parse(line))).toString('hex') }
  catch (error) { return error.code || error.name }
});
process.stdout.write(decoded.join('\\n') + '\\n');
"""


def _component(chance: random.Random) -> bytes:
    """Return a name of any characters: controls, reserved characters, any script."""
    spans = ((0x01, 0x80), (0x01, 0x30), (0x80, 0xD800), (0xE000, 0x110000))
    text = "".join(
        chr(chance.randrange(*chance.choice(spans))) for _ in range(chance.randint(1, 12))
    ).replace("/", "%2F")
    return b"..." if text in (".", "..") else text.encode()


def _paths(count: int) -> list[bytes]:
    chance = random.Random(5)  # noqa: S311 - to be reproducible is its purpose
    paths = [
        b"/" + b"/".join(_component(chance) for _ in range(chance.randint(1, 4)))
        for _ in range(count)
    ]
    assert all(normalize_path(path) == path and is_utf8(path) for path in paths)
    return paths


def _through_node(uris: list[str]) -> list[str]:
    done = subprocess.run(
        ["node", "-e", _DECODED_BY_NODE],
        input="\n".join(map(json.dumps, uris)), capture_output=True, text=True, check=True,
        timeout=_HANG_GUARD,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_uri_is_exact_in_python_and_in_the_sdk(sizes: Sizes) -> None:
    for path in _paths(sizes.pick(test=500, check=20_000, soak=60_000)):
        uri = to_uri(path)
        assert uri.isascii()
        assert unquote_to_bytes(uri.removeprefix("file://")) == path
        assert json.loads(Root.model_validate({"uri": uri}).model_dump_json())["uri"] == uri


@pytest.mark.needs("node")
def test_a_uri_is_exact_in_node(sizes: Sizes) -> None:
    paths = _paths(sizes.pick(test=4_000, check=20_000, soak=60_000))
    assert _through_node([to_uri(path) for path in paths]) == [path.hex() for path in paths]


@pytest.mark.needs("node")
def test_control_an_unescaped_path_differs_in_node() -> None:
    paths = _paths(1_000)
    naive = _through_node(["file://" + path.decode() for path in paths])
    assert naive != [path.hex() for path in paths]


@pytest.mark.needs("node")
def test_a_path_that_is_not_utf8_is_not_published_because_node_cannot_read_it() -> None:
    path = b"/home/ann/\xff"
    assert not is_utf8(path)
    assert _through_node([to_uri(path)]) == ["URIError"]
