"""Set the version everywhere, close the section of the changelog, commit, and tag: `make release`.

    release.py VERSION [--repository URL]           print what would change
    release.py VERSION [--repository URL] --apply   change it, commit, and tag; push nothing
    release.py --check TAG                          fail unless TAG names the version of this tree
    release.py --notes TAG                          print the section of the changelog

All changes are computed before the first file is written. The address of the repository is in
pyproject.toml; with --repository, it changes wherever a file names it.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

MODULE = "daemon/rootsd/__init__.py"
CHANGELOG = "CHANGELOG.md"
DEBIAN = "packaging/debian/changelog"
ENTRY = "server.json"
FEATURE = "packaging/devcontainer/devcontainer-feature.json"
# The documents that show the version in the output of a command, or name it.
SHOWING = (
    "README.md", "docs/README.md", "docs/guide/start.md", "docs/guide/troubleshooting.md",
    "docs/terminal-decide-dark.svg", "docs/terminal-decide-light.svg",
)  # fmt: skip
GITHUB = "https://github.com/"


# packaging/README.md explains each step.
_STEPS = """To release, type:
  make release VERSION={version} APPLY=1
  git push origin HEAD v{version}
Then approve the environment `release` on GitHub. When the package is there, type:
  mcp-publisher login github
  mcp-publisher publish"""


class Refused(Exception):
    """A release that must not happen, with the reason."""


def git(top: Path, *words: str) -> str:
    """Run git in the checkout and return its output."""
    command = ["git", "-C", str(top), *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Refused(f"git {words[0]}: {run.stderr.strip()}")
    return run.stdout


def current_version(top: Path) -> str:
    """Return the version of the package in the checkout."""
    return _one(r'^__version__ = "(.*)"$', (top / MODULE).read_text(), MODULE)


def check(top: Path, version: str) -> None:
    """Raise `Refused` unless the checkout can become this version."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise Refused(f"{version!r} is not a version like 1.2.3")
    now = current_version(top)
    if _numbers(version) < _numbers(now):
        raise Refused(f"{version} is not newer than {now}")
    # The first release is of the version that the tree has already.
    if git(top, "tag", "--list", f"v{version}"):
        raise Refused(f"the tag v{version} exists already")
    if changed := git(top, "status", "--porcelain"):
        raise Refused(f"the tree has changes that are not committed:\n{changed.rstrip()}")


def section(changelog: str, title: str) -> str:
    """Return the text below the heading that starts with `title`, without the heading."""
    heading = rf"^## {re.escape(title)}(?: \(.*?\))?\n"
    found = re.search(rf"{heading}(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if found is None:
        raise Refused(f"{CHANGELOG} has no section {title}")
    return found[1].strip()


def changes(top: Path, version: str, repository: str | None, now: datetime) -> dict[str, str]:
    """Return the new text of each file that the release changes, by its path in the checkout."""
    texts = _moved(top, repository) if repository is not None else {}

    def text_of(name: str) -> str:
        return texts.get(name) or (top / name).read_text()

    before = current_version(top)
    for name in (MODULE, ENTRY, FEATURE, *SHOWING):
        texts[name] = re.sub(rf"(?<![\d.]){re.escape(before)}(?![\d.]*\d)", version, text_of(name))
    changelog = text_of(CHANGELOG)
    if not section(changelog, "Unreleased"):
        raise Refused(f"{CHANGELOG} has nothing below Unreleased")
    texts[CHANGELOG] = changelog.replace(
        "## Unreleased\n", f"## Unreleased\n\n## {version} ({now:%Y-%m-%d})\n", 1
    )
    maintainer = _one(r"^ -- (.*?)  ", text_of(DEBIAN), DEBIAN)
    older = re.sub(
        rf"^rootsd \({re.escape(version)}\) .*?^ -- .*?\n+", "", text_of(DEBIAN), count=1,
        flags=re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    texts[DEBIAN] = (
        f"rootsd ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
        f" -- {maintainer}  {format_datetime(now)}\n"
    ) + (f"\n{older}" if older else "")
    return texts


def difference(top: Path, texts: Mapping[str, str]) -> str:
    """Return what would change, as a unified diff."""
    lines: list[str] = []
    for name, text in sorted(texts.items()):
        before = (top / name).read_text().splitlines(keepends=True)
        after = text.splitlines(keepends=True)
        lines += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(lines)


def apply(top: Path, version: str, texts: Mapping[str, str]) -> None:
    """Write the files, commit them, and tag the commit."""
    for name, text in texts.items():
        (top / name).write_text(text)
    git(top, "commit", "--quiet", "--message", f"release: set the version to {version}",
        "--", *texts)  # fmt: skip
    git(top, "tag", "--annotate", "--message", f"rootsd {version}", f"v{version}")


def main(words: Sequence[str], top: Path = Path(__file__).parent.parent) -> int:
    """Run the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition(":")[0])
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("version", nargs="?")
    task.add_argument("--check", metavar="TAG")
    task.add_argument("--notes", metavar="TAG")
    parser.add_argument("--repository", metavar="URL")
    parser.add_argument("--apply", action="store_true")
    given = parser.parse_args(words)
    try:
        if given.version is not None:
            _release(top, given)
        else:
            _report(top, given)
    except Refused as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _release(top: Path, given: argparse.Namespace) -> None:
    check(top, given.version)
    texts = changes(top, given.version, given.repository, datetime.now(UTC))
    print(difference(top, texts), end="")
    if given.apply:
        apply(top, given.version, texts)
        print(f"Committed and tagged. To publish: git push origin HEAD v{given.version}")
    else:
        print(f"Nothing is changed yet. {_STEPS.format(version=given.version)}")


def _report(top: Path, given: argparse.Namespace) -> None:
    tag = given.check or given.notes
    version = current_version(top)
    if tag != f"v{version}":
        raise Refused(f"the tag is {tag}, and this tree is version {version}")
    notes = section((top / CHANGELOG).read_text(), version)
    if given.notes:
        print(notes)


def _moved(top: Path, repository: str) -> dict[str, str]:
    """Return the text of each tracked file that names the repository, with the new address."""
    settings = tomllib.loads((top / "pyproject.toml").read_text())
    old: str = settings["project"]["urls"]["Repository"]
    if not re.fullmatch(rf"{GITHUB}[\w.-]+/[\w.-]+", repository):
        raise Refused(f"{repository!r} is not an address like {GITHUB}OWNER/rootsd")
    pairs = [
        (old, repository),
        # The registry derives the name of the entry from the owner of the repository.
        (f"io.github.{old.removeprefix(GITHUB)}", f"io.github.{repository.removeprefix(GITHUB)}"),
    ]
    texts = {}
    for name in git(top, "ls-files", "-z").split("\0"):
        path = top / name
        if not name or path.suffix == ".svg" or not path.is_file():
            continue
        text = before = path.read_text(errors="surrogateescape")
        for part, new in pairs:
            text = text.replace(part, new)
        if text != before:
            texts[name] = text
    return texts


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _one(pattern: str, text: str, name: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Refused(f"{name} does not match {pattern}")
    return found[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
