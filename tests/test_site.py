"""The site: its pages, its links, and the check of what mkdocs built.

The stage "the site" of `.ci/run` builds it, and plants broken links. These tests need no mkdocs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from check_site import findings, main
from ruamel.yaml import YAML
from site_hooks import ADDED, REPOSITORY, adapt

TOP = Path(__file__).parent.parent
PAGE = """<html><head><link rel="stylesheet" href="style.css"><link rel="next" href="guide/b.html">
</head><body>{}<h1 id="top">A</h1></body></html>"""
CONTROL = '<a href="#top">a</a> <a href="guide/b.html#end">b</a> <a href="https://a.example">c</a>'


def _site(folder: Path, body: str, style: str = "p { color: red }") -> Path:
    (folder / "guide").mkdir()
    (folder / "index.html").write_text(PAGE.format(body))
    (folder / "guide" / "b.html").write_text('<a href="../index.html">a</a><h2 id="end">B</h2>')
    (folder / "style.css").write_text(style)
    return folder


def test_a_sound_site_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(_site(tmp_path, CONTROL))]) == 0
    assert capsys.readouterr().out.startswith("2 pages: ")


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        ('<a href="nowhere.html">', "no such file"),
        ('<a href="guide/">', "no such file"),
        ('<a href="../outside.html">', "no such file"),
        ('<a href="#nowhere">', "no such anchor"),
        ('<a href="guide/b.html#nowhere">', "no such anchor"),
        ('<a href="/guide/b.html">', "begins at the top of the server"),
        ('<img src="picture.svg">', "no such file"),
        ('<img srcset="guide/b.html 1x, picture.svg 2x">', "no such file"),
        ('<img src="https://example.org/badge.svg">', "loaded from another site"),
        ('<script src="//example.org/a.js"></script>', "loaded from another site"),
        ('<link rel="preconnect" href="https://example.org">', "loaded from another site"),
        ('<style>@import "https://example.org/a.css";</style>', "loaded from another site"),
        ('<p style="background: url(https://example.org/a.png)">', "loaded from another site"),
        ("<p>Two kinds:\n- one\n- two</p>", "not read as a list or a table: - one"),
        ("<p>Two kinds:\n| a | b |\n|---|---|</p>", "not read as a list or a table: | a | b |"),
    ],
)
def test_a_planted_fault_is_found(
    planted: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = _site(tmp_path, CONTROL + planted)
    (found,) = findings(site)
    assert found.startswith("index.html:2: ")
    assert found.endswith(problem)
    assert main([str(site)]) == 1
    assert found in capsys.readouterr().err


def test_a_font_of_another_site_is_found_in_a_style_sheet(tmp_path: Path) -> None:
    style = "p { color: red }\n@font-face { src: url('https://fonts.example.org/a.woff2') }"
    (found,) = findings(_site(tmp_path, CONTROL, style))
    assert found == "style.css:2: https://fonts.example.org/a.woff2: loaded from another site"


def test_a_folder_without_pages_is_a_finding(tmp_path: Path) -> None:
    assert list(findings(tmp_path)) == [f"{tmp_path}: no page"]


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
