"""Hooks of mkdocs: make the documents, which are written for GitHub, work on the site.

* Some pages of the site are outside docs/. `on_files` adds them.
* A link that leaves docs/ leads to one of these pages, or to the file in the repository.
* A `<picture>` follows the theme of the system, but a reader can change the theme of the site. So
  each one becomes two images, and the theme shows one of them.
* A search lists the pages for people before the generated ones, which contain nearly every word.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the tests import this module, and have no mkdocs
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

TOP = Path(__file__).parent.parent
REPOSITORY = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
DOCS = "docs/"
GENERATED = "reference/"
# The pages outside docs/, with their places on the site.
ADDED = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/vulnerabilities.md",
}
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]*)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]*)">\s*</picture>'
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests have no mkdocs

    for source, place in ADDED.items():
        files.append(File.generated(config, place, abs_src_path=str(TOP / source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:  # noqa: ANN401 - mkdocs has more
    """Adapt the text of one page."""
    if page.file.src_uri.startswith(GENERATED):
        page.meta["search"] = {"boost": 0.1}
    return adapt(markdown, page.file.src_uri)


def adapt(text: str, place: str) -> str:
    """Return the text of a document for its place on the site, such as `guide/start.md`."""
    parts = CODE.split(text)
    parts[::2] = [_adapt_prose(part, place) for part in parts[::2]]
    return "".join(parts)


def _adapt_prose(text: str, place: str) -> str:
    sources = {there: source for source, there in ADDED.items()}
    folder = posixpath.dirname(sources.get(place, DOCS + place))

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        return f"]({_address(target, place) or found[1]}{found[2] or ''})"

    text = _PICTURE.sub(r"![\g<alt>](\g<light>#only-light)![\g<alt>](\g<dark>#only-dark)", text)
    return _LINK.sub(link, text)


def _address(target: str, place: str) -> str | None:
    """Return the link from a place on the site to a file of the repository, or None without one.

    mkdocs reports a link to a file that does not exist, so it stays as it is.
    """
    if target in ADDED or target.startswith(DOCS):
        there = ADDED.get(target, target.removeprefix(DOCS))
        return posixpath.relpath(there, posixpath.dirname(place))
    file = TOP / target
    if not file.exists():
        return None
    return f"{REPOSITORY}/{'tree' if file.is_dir() else 'blob'}/main/{target}"
