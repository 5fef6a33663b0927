"""The site: its pages, and what the hooks of mkdocs make of links, pictures, and lists.

The stage "the site" of `.ci/run` builds it, and plants broken links. These tests need no mkdocs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from site_hooks import ADDED, CODE, REPOSITORY, adapt

TOP = Path(__file__).parent.parent
# The Markdown of mkdocs needs a blank line before a list or a table, and that of GitHub does not.
HIDDEN = re.compile(r"^(?![-*|#>\s]|\d+[.] ).+\n(?:[-*] |\d+[.] |\|)", re.MULTILINE)


@pytest.mark.parametrize(
    ("place", "link", "there"),
    [
        ("guide/start.md", "decide.md", "decide.md"),
        ("guide/start.md", "../SECURITY.md#the-rule", "../SECURITY.md#the-rule"),
        ("guide/start.md", "../../SECURITY.md", "../project/vulnerabilities.md"),
        ("SECURITY.md", "../SECURITY.md", "project/vulnerabilities.md"),
        ("project/vulnerabilities.md", "docs/SECURITY.md", "../SECURITY.md"),
        ("TESTING.md", "../CONTRIBUTING.md#tests", "project/contributing.md#tests"),
        ("SCRIPTS.md", "../examples/", f"{REPOSITORY}/tree/main/examples"),
        ("SCRIPTS.md", "schema/rootsd-1.schema.json", "schema/rootsd-1.schema.json"),
        ("guide/start.md", "../../packaging/README.md#nix",
         f"{REPOSITORY}/blob/main/packaging/README.md#nix"),
        ("guide/start.md", "../../nowhere.md", "../../nowhere.md"),
        ("guide/start.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("guide/start.md", "#install", "#install"),
    ],
)  # fmt: skip
def test_a_link_leads_to_the_same_document_on_the_site(place: str, link: str, there: str) -> None:
    assert adapt(f"See [it]({link}).", place) == f"See [it]({there})."


def test_code_stays_as_it_is() -> None:
    text = "```\n[it](../../SECURITY.md)\n```\n"
    assert adapt(text, "guide/start.md") == text


def test_a_picture_follows_the_theme_of_the_site() -> None:
    picture = (
        '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="../a-dark.svg">\n'
        '  <img alt="A terminal" src="../a-light.svg">\n</picture>\n'
    )
    assert adapt(picture, "guide/start.md") == (
        "![A terminal](../a-light.svg#only-light)![A terminal](../a-dark.svg#only-dark)\n"
    )


def _pages(nav: Any) -> list[str]:  # noqa: ANN401 - as YAML has it
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _pages(part)]


def test_every_document_is_in_the_navigation_once() -> None:
    docs = TOP / "docs"
    settings = YAML().load(TOP / "mkdocs.yml")
    documents = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert sorted(_pages(settings["nav"])) == sorted([*documents, *ADDED.values()])
    assert set(ADDED) <= set(settings["watch"])


def test_every_picture_of_a_document_becomes_two_on_the_site() -> None:
    for path in (TOP / "docs").rglob("*.md"):
        place = path.relative_to(TOP / "docs").as_posix()
        assert "<picture>" not in adapt(path.read_text(), place), place


@pytest.mark.parametrize(
    "text", ["Two kinds:\n- one\n", "Two kinds:\n1. one\n", "Two:\n| a | b |\n"]
)
def test_a_list_or_a_table_without_a_blank_line_before_it_is_found(text: str) -> None:
    assert HIDDEN.search(text)
    assert not HIDDEN.search(text.replace("\n", "\n\n", 1))


def test_each_list_and_table_has_a_blank_line_before_it() -> None:
    for path in (*(TOP / "docs").rglob("*.md"), *map(TOP.joinpath, ADDED)):
        found = HIDDEN.search(CODE.sub("", path.read_text()))
        assert found is None, (path, found)
