"""Resolve references (names, ids, paths, globs), and check names and tags that become references.

What a person's words mean: a name, an id, a path, a glob over names and paths, a selection.

The names and tags that a person may give.

They reach every client, and a person types them again as a REF. So a word that cannot be typed, or
that already means something else as a REF, is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from rootsd.core.catalog import Catalog
from rootsd.core.decide import is_denied_by_person
from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Presence, Project
from rootsd.core.names import ID_SEPARATOR
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.uris import looks_like_uri
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_GLOB_CHARACTERS = frozenset("*?[")
_SHELL_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@+-]*")


def real_path(typed: str, cwd: str, resolve: Callable[[bytes], bytes] = os.path.realpath) -> bytes:
    """The canonical path of what a person typed in `cwd`: symlinks followed, `..` resolved."""
    return resolve(os.path.join(bytes_of(cwd), bytes_of(os.path.expanduser(typed))))


def is_glob(reference: str) -> bool:
    """Return whether a reference may mean several projects."""
    return not _GLOB_CHARACTERS.isdisjoint(reference)


def reference_to(catalog: Catalog, project: Project) -> str:
    """Return the word to type for `project`: its name if no shell takes it apart, else its id."""
    name = catalog.name_of(project)
    return name if _SHELL_SAFE.fullmatch(name) and name not in catalog.ids else project.id


def never_plain(_path: bytes) -> bool:
    """Has each path followed, plain or not."""
    return False


def canonical_path(real_path: Callable[[str, str], bytes], typed: str, cwd: str) -> bytes:
    """`real_path(typed, cwd)`. Raises BadRequest where `typed` can be no path.

    An empty one is none: it comes from a variable that is not set, and would mean `cwd`.
    """
    try:
        if not typed:
            raise ValueError("it is empty")  # noqa: TRY301 - one sentence for all that is no path
        return real_path(typed, cwd)
    except ValueError as error:
        shown = safe_label(typed, limit=None)
        raise BadRequest(f"{shown} is no path: {error}", "rootsd ls") from error


def is_selected(catalog: Catalog, project: Project, select: Selection) -> bool:
    """Whether `select` means `project`; where projects are named, all others are left to that."""
    match select:
        case Selection.PENDING:
            return catalog.is_pending(project)
        case Selection.UNPUBLISHABLE:
            return catalog.is_unpublishable(project)
        case Selection.LAPSED:
            return project.ruling.is_lapsed
        case Selection.PUBLISHED:
            return project.path in catalog.roots
        case Selection.MISSING:
            is_missing = project.observed.presence is Presence.MISSING
            return is_missing and not is_denied_by_person(project)
        case Selection.ALL | Selection.NAMED:
            return True


@dataclass(frozen=True)
class ReferenceResolver:
    """Resolves references in one catalog.

    `real_path` turns what a person typed into a canonical absolute path, following symlinks.
    """

    catalog: Catalog
    real_path: Callable[[str], bytes]

    def one(self, reference: str) -> Project | None:
        """The project that a name, an id or a path means; None where it means none.

        A name or an id wins over a path. Raises AmbiguousReference where it is the name of one
        and the id of another, since whoever makes a project names it, or the last component of
        several names.
        """
        catalog = self.catalog
        named, meant = self._names.get(reference), catalog.ids.get(reference)
        if named is not None and meant is not None and named != meant:
            name, other = safe_label(named, limit=None), safe_label(meant, limit=None)
            raise AmbiguousReference(
                f"{safe_label(reference)} is a name and an id", "rootsd ls", (name, other)
            )
        for path in (named, meant):
            if path is not None:
                return catalog.projects[path]
        where = bytes_of(reference) if looks_like_uri(reference) else self.real_path(reference)
        if (project := catalog.projects.get(where)) is not None:
            return project
        return self._by_ending(reference)

    def find(self, reference: str) -> Sequence[Project]:
        """The projects that a reference means, in the order of their paths; it may mean none."""
        if (project := self.one(reference)) is not None:
            return (project,)
        return () if _GLOB_CHARACTERS.isdisjoint(reference) else self._by_glob(reference)

    def all(
        self, references: Iterable[str], fits: Callable[[Project], bool] = lambda _: True
    ) -> list[Project]:
        """The projects that the references mean, each once, in that order.

        A glob means only projects that `fits` takes; a project that is named is named.
        Raises UnknownProject where a reference means nothing, AmbiguousReference where one that
        is no glob means several.
        """
        found: dict[bytes, Project] = {}
        for reference in references:
            for project in self._matches(reference, fits):
                found.setdefault(project.path, project)
        return list(found.values())

    @cached_property
    def _names(self) -> dict[str, bytes]:
        proposed = {name: path for path, name in self.catalog.proposed_names.items()}
        return proposed | dict(self.catalog.frozen_names)

    def _matches(self, reference: str, fits: Callable[[Project], bool]) -> Sequence[Project]:
        if (project := self.one(reference)) is not None:
            return (project,)
        shown = safe_label(reference, limit=None)
        if _GLOB_CHARACTERS.isdisjoint(reference):
            raise UnknownProject(f"no project is called {shown}", "rootsd ls")
        matches = self._by_glob(reference)
        if not matches:
            raise UnknownProject(f"no project matches {shown}", "rootsd ls")
        fitting = [project for project in matches if fits(project)]
        if not fitting:
            raise UnknownProject(
                f"nothing that matches {shown} waits for a decision", "rootsd pending"
            )
        return fitting

    def _by_glob(self, pattern: str) -> list[Project]:
        """By name, by path, or by as many last components of the path as the pattern has."""
        matches = re.compile(translate(pattern)).match
        length = pattern.count("/") + 1
        catalog = self.catalog
        return [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if matches(catalog.name_of(project))
            or matches(path := text_of(project.path))
            or matches("/".join(path.split("/")[-length:]))
        ]

    def _by_ending(self, reference: str) -> Project | None:
        """Return the only project whose name ends so, or the only one whose path does, or None.

        `api` fits `acme/api` and `api~r7k2`. A path fits only from two components on, and a
        whole path is the end of nothing.
        """
        if reference.startswith("/"):
            return None
        catalog = self.catalog
        ending = "/" + reference
        everything = catalog.projects.values()
        is_of_path = "/" in reference
        fits = [
            project
            for project in everything
            if (name := catalog.name_of(project)).endswith(ending)
            or name == f"{reference}{ID_SEPARATOR}{project.id}"
            or (is_of_path and text_of(project.path).endswith(ending))
        ]
        if len(fits) > 1:
            names = sorted(reference_to(catalog, project) for project in fits)
            shown = safe_label(reference)
            raise AmbiguousReference(f"{shown} fits several projects", "rootsd ls", names)
        return fits[0] if fits else None


_FORBIDDEN_CHARACTERS = frozenset("*?[")
_FORBIDDEN_PREFIXES = {"/": "a path", "~": "a path", "-": "a flag", "tag:": "a tag"}
_REMEDY = "rootsd rename --help"


def check_label(word: str) -> None:
    """Raise BadRequest for a word that can be no name and no tag, of whatever project."""
    if safe_label(word) != word or word in (".", ".."):
        raise BadRequest(
            f"{safe_label(word)} is no name and no tag: up to 64 visible characters, no path"
        )
    for start, what in _FORBIDDEN_PREFIXES.items():
        if word.startswith(start):
            raise BadRequest(f"{word} is no name and no tag: it would be read as {what}", _REMEDY)


def check_name(name: str, path: bytes, catalog: Catalog) -> None:
    """Raise BadRequest for a word that can be no name of the project at `path`.

    The end of its own path is always a name for it, as `acme/api` is for `/src/acme/api`.
    """
    check_label(name)
    _check_no_id(name, path, catalog)
    if f"/{text_of(path)}".endswith(f"/{name}"):
        return
    if "/" in name:
        raise BadRequest(
            f"{name} would be read as a path: a name with a slash is the end of the project's own",
            _REMEDY,
        )
    _check_no_glob(name)


def check_tag(tag: str, catalog: Catalog) -> None:
    """Raise BadRequest for a word that can be no tag."""
    check_label(tag)
    _check_no_id(tag, None, catalog)
    if "/" in tag:
        raise BadRequest(f"{tag} is no tag: it would be read as a path", "rootsd tag --help")
    _check_no_glob(tag)


def _check_no_id(word: str, path: bytes | None, catalog: Catalog) -> None:
    holder = catalog.ids.get(word)
    if holder is not None and holder != path:
        where = safe_label(holder, limit=None)
        raise BadRequest(f"{word} is the id of {where}", "rootsd ls")


def _check_no_glob(word: str) -> None:
    if not _FORBIDDEN_CHARACTERS.isdisjoint(word):
        raise BadRequest(f"{word} is no name and no tag: it would be read as a glob", _REMEDY)
