"""Check the built site: `make site` runs this after mkdocs.

    check_site.py FOLDER

* Each link within the site leads to a file, and to an anchor in it.
* No page loads a script, a style, a font, or a picture from another site. So the site works
  offline, and reports no reader. A link that a reader follows may lead anywhere.
* No paragraph contains the source of a list or a table. The Markdown of mkdocs needs a blank line
  before these, and that of GitHub does not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The attributes with an address that a browser loads without a click.
_LOADING = frozenset(
    [("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("source", "srcset"),
     ("img", "srcset"), ("object", "data"), ("embed", "src"), ("video", "src"), ("audio", "src")]
)  # fmt: skip
# The relations of <link> that only name an address.
_NAMING = frozenset({"alternate", "author", "canonical", "edit", "license", "next", "prev"})
_IN_STYLE = re.compile(r"""(?:@import\s+|url\(\s*)["']?([^"')\s;]+)""")
_UNREAD = re.compile(r"^\s*(?:[-*] |\d+[.] |\|)", re.MULTILINE)
# It is shown for any missing address, so its links begin at the top of the site.
_MISSING_PAGE = "404.html"


@dataclass(frozen=True, slots=True)
class Address:
    """An address in a file of the site, at a line."""

    line: int
    target: str


@dataclass(slots=True)
class SitePage:
    """What one page of HTML names."""

    anchors: set[str] = field(default_factory=set)
    links: list[Address] = field(default_factory=list)
    loads: list[Address] = field(default_factory=list)
    paragraphs: list[tuple[int, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    """Reads one page."""

    def __init__(self, page: SitePage) -> None:
        super().__init__()
        self._page = page
        self._paragraph: list[str] | None = None
        self._begin = 0
        self._is_style = False
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        line, _ = self.getpos()
        self._page.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self._page.links.append(Address(line, given["href"]))
        if tag == "link" and given.get("rel") not in _NAMING:
            self._page.loads.append(Address(line, given.get("href", "")))
        self._page.loads += [
            Address(line, part.split()[0])
            for name, value in given.items()
            if (tag, name) in _LOADING
            for part in (value.split(",") if name == "srcset" else [value])
            if part.strip()
        ]
        self._page.loads += _addresses_of_style(given.get("style", ""), line)
        self._is_style = tag == "style"
        self._is_code = tag == "code"
        if tag == "p":
            self._paragraph, self._begin = [], line

    def handle_endtag(self, tag: str) -> None:
        self._is_style = self._is_code = False
        if tag == "p" and self._paragraph is not None:
            self._page.paragraphs.append((self._begin, "".join(self._paragraph)))
            self._paragraph = None

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self._page.loads += _addresses_of_style(data, self.getpos()[0])
        if self._paragraph is not None and not self._is_code:
            self._paragraph.append(data)


def _addresses_of_style(text: str, line: int) -> list[Address]:
    return [
        Address(line + text.count("\n", 0, found.start()), found[1])
        for found in _IN_STYLE.finditer(text)
    ]


def read_page(text: str) -> SitePage:
    """Return what a page names."""
    page = SitePage()
    reader = _Reader(page)
    reader.feed(text)
    reader.close()
    return page


def findings(site: Path) -> Iterator[str]:
    """Yield what is wrong with the site, a line for each."""
    pages = {path: read_page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no page"
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.links:
            if problem := _broken(link.target, path, site, pages):
                yield f"{where}:{link.line}: {link.target}: {problem}"
        yield from _loads(page.loads, path, site, pages)
        for line, text in page.paragraphs:
            if found := _UNREAD.search(text):
                shown = text[found.start() :].strip().splitlines()[0]
                yield f"{where}:{line}: not read as a list or a table: {shown}"
    for style in sorted(site.rglob("*.css")):
        yield from _loads(_addresses_of_style(style.read_text(), 1), style, site, pages)


def _loads(
    loads: Sequence[Address], path: Path, site: Path, pages: dict[Path, SitePage]
) -> Iterator[str]:
    for load in loads:
        if problem := _foreign(load.target) or _broken(load.target, path, site, pages):
            yield f"{path.relative_to(site)}:{load.line}: {load.target}: {problem}"


def _foreign(target: str) -> str | None:
    parts = urlsplit(target)
    is_own = not parts.netloc and parts.scheme in ("", "data")
    return None if is_own else "loaded from another site"


def _broken(target: str, path: Path, site: Path, pages: dict[Path, SitePage]) -> str | None:
    parts = urlsplit(target)
    if parts.netloc or parts.scheme:
        return None
    folder = path.parent
    if parts.path.startswith("/"):
        if path.name != _MISSING_PAGE:
            return "begins at the top of the server"
        folder = site
    file = path
    if parts.path:
        file = Path(folder, unquote(parts.path).lstrip("/")).resolve()
        if file.is_dir():
            file /= "index.html"
    if not file.is_file() or not file.is_relative_to(site.resolve()):
        return "no such file"
    page = pages.get(file)
    if parts.fragment and page is not None and unquote(parts.fragment) not in page.anchors:
        return "no such anchor"
    return None


def main(words: Sequence[str]) -> int:
    """Print the findings. Return the exit status: 1 if there are some."""
    site = Path(words[0]).resolve()
    found = list(findings(site))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        return 1
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages: every link leads somewhere, and nothing is loaded from elsewhere")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
