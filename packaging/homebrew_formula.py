"""Print the Homebrew formula for a source archive of rootsd.

    python3 packaging/homebrew_formula.py dist/rootsd-1.2.3.tar.gz          # of the release
    python3 packaging/homebrew_formula.py --local dist/rootsd-1.2.3.tar.gz  # to try it

The files of the dependencies are in pinned_files.json, with the hashes of the lock.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).parent.parent
PINNED = Path(__file__).parent / "pinned_files.json"

FORMULA = """\
class Rootsd < Formula
  include Language::Python::Virtualenv

  desc "{description}"
  homepage "{repository}"
  url "{url}"
  sha256 "{sha256}"
  license "MIT"

{depends}

  on_macos do
{darwin}
  end

  on_linux do
{linux}
  end

{resources}

  def install
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"rootsd", "completion")
  end

  def caveats
    <<~EOS
      To watch a folder of projects now, and at each login:
        rootsd up ~/src
        rootsd service install
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/rootsd version")
    assert_match "rootsd", (man1/"rootsd.1").read
  end
end
"""


def formula(archive: Path, url: str | None = None) -> str:
    """Return the formula for a source archive, which is at `url`, or else at the release's."""
    pinned = json.loads(PINNED.read_text())
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    repository = project["urls"]["Repository"]
    named = re.fullmatch(r"rootsd-(\d+\.\d+\.\d+)\.tar\.gz", archive.name)
    if named is None:
        sys.exit(f"{archive} is not a source archive of a release, like rootsd-1.2.3.tar.gz")
    depends = sorted([*pinned["homebrew"], "libgit2", f"python@{pinned['python']}"])
    files = pinned["formula"]
    return FORMULA.format(
        description="One list of approved project folders for every MCP client",
        repository=repository,
        url=url or f"{repository}/releases/download/v{named[1]}/{archive.name}",
        sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
        depends="\n".join(f'  depends_on "{name}"' for name in depends),
        darwin=_resources(files["darwin"], "    "),
        linux=_resources(files["linux"], "    "),
        resources=_resources(files["all"], "  "),
    )


def _resources(files: Sequence[dict[str, str]], indent: str) -> str:
    blocks = (
        f'{indent}resource "{file["name"]}" do\n'
        f'{indent}  url "{file["url"]}"\n'
        f'{indent}  sha256 "{file["sha256"]}"\n'
        f"{indent}end"
        for file in files
    )
    return "\n\n".join(blocks)


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--local", action="store_true", help="name the file on this machine")
    given = parser.parse_args(words)
    url = given.archive.absolute().as_uri() if given.local else None
    print(formula(given.archive, url), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
