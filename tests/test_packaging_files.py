"""The Nix flake and the Homebrew formula install the versions and the files that the lock pins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from homebrew_formula import formula
from pin_files import BUILD, HOMEBREW, LOCK, PINNED, SYSTEMS, locked, needed

import rootsd

TOP = Path(__file__).parent.parent

# What the flake takes from nixpkgs, for an evaluation without nixpkgs and without a store.
EVALUATION = """
let
  stand-in = system: {
    fetchurl = { url, sha256 }: "/fetched/${sha256}/${baseNameOf url}";
    python@MINOR@ = { outPath = "/python"; pkgs.pip = "/pip"; };
    autoPatchelfHook = "/hook";
    zlib = "/zlib";
    lib = {
      concatMapStrings = f: list: builtins.concatStringsSep "" (map f list);
      optional = condition: value: if condition then [ value ] else [ ];
      optionals = condition: values: if condition then values else [ ];
      licenses.mit = "MIT";
    };
    stdenv = {
      mkDerivation = attributes: attributes;
      hostPlatform.isLinux = builtins.match ".*-linux" system != null;
      cc.cc.lib = "/cc";
    };
  };
  systems = builtins.fromJSON ''@SYSTEMS@'';
  nixpkgs.legacyPackages = builtins.listToAttrs
    (map (name: { inherit name; value = stand-in name; }) systems);
  outputs = (import @FLAKE@).outputs { self = "/src"; inherit nixpkgs; };
in
builtins.mapAttrs (_: packages: {
  inherit (packages.default) version buildPhase nativeBuildInputs meta;
}) outputs.packages
"""


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    """The content of packaging/pinned_files.json."""
    document: dict[str, Any] = json.loads(PINNED.read_text())
    return document


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the name of a source archive."""
    path = tmp_path_factory.mktemp("dist") / "rootsd-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz"):
        return path


def _all_files(node: object) -> list[dict[str, str]]:
    if isinstance(node, list):
        return [found for each in node for found in _all_files(each)]
    if isinstance(node, dict):
        return [node] if "sha256" in node else [
            found for each in node.values() for found in _all_files(each)
        ]  # fmt: skip
    return []


def _not_locked(files: list[dict[str, str]], lock: str) -> list[str]:
    """Return the files that have another version than the lock, or a hash that it lacks."""
    versions = locked(lock)
    found = []
    for file in files:
        version, hashes = versions[file["name"]]
        name = file["url"].rpartition("/")[2]
        of_version = f"-{version}-" in name or name.endswith(f"-{version}.tar.gz")
        if not of_version or file["sha256"] not in hashes:
            found.append(name)
    return found


def test_each_pinned_file_is_one_of_the_lock(pinned: dict[str, Any]) -> None:
    files = _all_files(pinned)
    assert len(files) > 100
    assert _not_locked(files, LOCK.read_text()) == [], "run packaging/pin_files.py"


def test_a_file_of_another_version_or_content_is_found(pinned: dict[str, Any]) -> None:
    file = pinned["wheels"]["x86_64-linux"]["run"][0]
    text = LOCK.read_text()
    other = text.replace(f"\n{file['name']}==", f"\n{file['name']}==9.")
    assert len(_not_locked([file], other)) == 1
    assert len(_not_locked([file], text.replace(file["sha256"], "0" * 64))) == 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_gets_all_packages_and_no_others(pinned: dict[str, Any], system: str) -> None:
    platform, _ = SYSTEMS[system]
    wheels = pinned["wheels"][system]
    assert [file["name"] for file in wheels["run"]] == needed(["rootsd"], platform)
    assert {file["name"] for file in wheels["build"]} == {*needed(BUILD, platform), *BUILD}
    assert all(file["url"].endswith(".whl") for file in (*wheels["run"], *wheels["build"]))


@pytest.mark.parametrize(("system", "part"), [("linux", "linux"), ("darwin", "darwin")])
def test_the_formula_has_all_packages_that_homebrew_lacks(
    pinned: dict[str, Any], system: str, part: str
) -> None:
    files = [*pinned["formula"]["all"], *pinned["formula"][part]]
    by_homebrew = {name for names in HOMEBREW.values() for name in names}
    assert {file["name"] for file in files} == {*needed(["rootsd"], system)} - by_homebrew
    assert pinned["homebrew"] == [*HOMEBREW]
    assert all(file["url"].endswith((".tar.gz", "-none-any.whl")) for file in files)


def test_the_formula_names_the_archive_and_each_file_once(
    pinned: dict[str, Any], archive: Path
) -> None:
    text = formula(archive)
    assert '/releases/download/v1.2.3/rootsd-1.2.3.tar.gz"' in text
    addresses = re.findall(r'^ *url "(.*)"$', text, re.MULTILINE)
    assert len(addresses) == len(set(addresses)) == 1 + len(_all_files(pinned["formula"]))
    assert formula(archive, archive.as_uri()).count(archive.as_uri()) == 1


@pytest.mark.needs("ruby")
def test_ruby_parses_the_formula(archive: Path) -> None:
    def parse(text: str) -> int:
        run = subprocess.run(
            ["ruby", "-c"], input=text, capture_output=True, text=True, check=False
        )
        return run.returncode

    assert parse(formula(archive)) == 0
    assert parse(formula(archive).removesuffix("end\n")) == 1


@pytest.mark.needs("nix")
def test_nix_evaluates_the_flake_for_each_system(tmp_path: Path, pinned: dict[str, Any]) -> None:
    question = tmp_path / "question.nix"
    question.write_text(
        EVALUATION.replace("@MINOR@", pinned["python"].replace(".", ""))
        .replace("@SYSTEMS@", json.dumps([*SYSTEMS]))
        .replace("@FLAKE@", str(TOP / "flake.nix"))
    )
    run = subprocess.run(
        ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json", question],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    packages = json.loads(run.stdout)
    assert packages.keys() == SYSTEMS.keys()
    for system, package in packages.items():
        assert package["version"] == rootsd.__version__
        assert package["meta"]["mainProgram"] == "rootsd"
        assert ("/hook" in package["nativeBuildInputs"]) == system.endswith("-linux")
        for file in _all_files(pinned["wheels"][system]):
            assert f"/fetched/{file['sha256']}/" in package["buildPhase"]
