"""Resolve references, and check the names and tags that become references.

A reference (REF) is a word that a person types to name projects: a name, an id, a path, or a glob
over names and paths. To resolve one, this module reads a catalog and canonicalizes paths on the
disk, so call it in a worker thread. Each reference of a request is resolved once.

People type names and tags as references, and every client gets them. So a name or a tag is refused
if people cannot type it, or if it already means something else as a reference.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from glob import escape

from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.decide import is_denied_by_person
from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.labels import safe_label, text_of_label
from rootsd.core.model import Presence, Project, Verdict
from rootsd.core.names import ID_SEPARATOR
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.core.uris import looks_like_uri, path_of_file_uri
from rootsd.disk.hung_mounts import may_follow
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_GLOB_CHARACTERS = frozenset("*?[")
_CUT = "…"
_UNQUOTED_ESCAPE = re.compile(r"u\{[0-9a-f]+\}|x[0-9a-f]{2}")
_MAX_CHOICES = 20
_MAX_SIMILAR = 3
_SHELL_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@+-]*")


def real_path(typed: str, cwd: str, resolve: Callable[[bytes], bytes] = os.path.realpath) -> bytes:
    """Return the canonical path of what a person typed in `cwd`, without symlinks and `..`."""
    return resolve(os.path.join(bytes_of(cwd), bytes_of(os.path.expanduser(typed))))


def is_glob(reference: str) -> bool:
    """Return whether a reference may mean several projects."""
    return not _GLOB_CHARACTERS.isdisjoint(reference)


def reference_to(catalog: Catalog, project: Project) -> str:
    """Return the word to type for `project`: its name if it needs no quotes, or else its id."""
    name = catalog.name_of(project)
    return name if _SHELL_SAFE.fullmatch(name) and name not in catalog.ids else project.id


def canonical_path(real_path: Callable[[str, str], bytes], typed: str, cwd: str) -> bytes:
    """Return `real_path(typed, cwd)`. Raises BadRequest if `typed` cannot be a path.

    An empty word is not a path. It probably comes from a shell variable that is not set. As a path
    it would mean `cwd`.
    """
    try:
        if not typed:
            raise ValueError("it is empty")  # noqa: TRY301 - one message for every word that is no path
        return real_path(typed, cwd)
    except ValueError as error:
        shown = safe_label(typed, limit=None)
        raise BadRequest(f"{shown} is not a path: {error}", "rootsd ls") from error


def is_selected(catalog: Catalog, project: Project, select: Selection) -> bool:
    """Return whether `select` covers `project`. A selection by name covers all projects here."""
    match select:
        case Selection.PENDING:
            return catalog.is_pending(project)
        case Selection.UNPUBLISHABLE:
            return catalog.is_unpublishable(project)
        case Selection.INCOMPLETE:
            return catalog.is_incomplete(project)
        case Selection.LAPSED:
            return project.ruling.is_lapsed
        case Selection.PUBLISHED:
            return project.path in catalog.roots
        case Selection.MISSING:
            is_missing = project.observed.presence is Presence.MISSING
            return is_missing and not is_denied_by_person(project)
        case Selection.CHANGED:
            is_approved = catalog.judgments[project.path].verdict is Verdict.APPROVED
            return is_approved and bool(project.changed_files)
        case Selection.ALL | Selection.NAMED:
            return True


class ResolvedReference(Struct, frozen=True):
    """The projects that one reference means in a catalog, in the order of their paths.

    `path` is the canonical path, or the URI, that the reference names. It is None if a name or an
    id matched. `is_pattern` is true if the projects matched a glob. `known` are the names that the
    reference may be a slip of, and `renamed` is the word for the project that had this name.
    """

    reference: str
    projects: tuple[Project, ...]
    path: bytes | None = None
    is_pattern: bool = False
    known: Iterable[str] = ()
    renamed: str = ""

    def unknown(self) -> UnknownProject:
        """Return the error for a reference without projects."""
        shown, typed = safe_label(self.reference, limit=None), self.reference
        if is_glob(typed):
            return UnknownProject(f"no project matches {shown}", "rootsd ls")
        if similar := [self.renamed] if self.renamed else similar_names(typed, self.known):
            message = f"no project is called {shown}{did_you_mean(similar)}"
            return UnknownProject(message, "rootsd ls", typed=typed, choices=similar)
        if self.path is not None and "/" in typed:
            at = safe_label(self.path, limit=None)
            return UnknownProject(f"no project is known at {at}", f"rootsd why {shlex.quote(at)}")
        return UnknownProject(f"no project is called {shown}", "rootsd ls")

    def matches(self, fits: Callable[[Project], bool]) -> Sequence[Project]:
        """Return the projects. If they matched a glob, return only those that `fits` accepts.

        Raises UnknownProject if none is left.
        """
        if self.projects and not self.is_pattern:
            return self.projects
        if not self.projects:
            raise self.unknown()
        fitting = [project for project in self.projects if fits(project)]
        if not fitting:
            shown = safe_label(self.reference, limit=None)
            raise UnknownProject(
                f"nothing that matches {shown} waits for a decision", "rootsd pending"
            )
        return fitting


def meant_projects(
    resolved: Iterable[ResolvedReference], fits: Callable[[Project], bool] = lambda _: True
) -> list[Project]:
    """Return the projects of all references, each once, in the order of the references.

    Raises what `ResolvedReference.matches` raises.
    """
    found: dict[bytes, Project] = {}
    for each in resolved:
        for project in each.matches(fits):
            found.setdefault(project.path, project)
    return list(found.values())


class ReferenceResolver(Struct, frozen=True, dict=True):
    """Resolves references in one catalog.

    `real_path` turns what a person typed into a canonical absolute path and follows symlinks. It
    reads the disk. So call `resolve` and `all` in a worker thread, unless `reads_disk` is false.
    """

    catalog: Catalog
    real_path: Callable[[str], bytes]

    def reads_disk(self, references: Iterable[str]) -> bool:
        """Return whether one of the references is neither a name nor an id."""
        names, ids = self.catalog.named_paths, self.catalog.ids
        return any(reference not in names and reference not in ids for reference in references)

    def resolve(self, references: Iterable[str]) -> list[ResolvedReference]:
        """Resolve each reference. If a reference means nothing, its result has no projects.

        Raises AmbiguousReference if a reference without wildcards means several projects, or was
        the name of another one, and what `real_path` raises.
        """
        resolved = [self._resolve_one(reference) for reference in references]
        for each in resolved:
            if each.is_pattern or not each.projects:
                continue
            paths = [project.path for project in each.projects]
            was, why, renamed = self.catalog.reserved.get(each.reference), "", None
            if was is not None and each.path not in (None, *paths) and paths != [was]:
                why = f", and was the name of {safe_label(was, limit=None)}"
                renamed = self.catalog.projects.get(was)
            if why or len(paths) > 1:
                raise several_match(self.catalog, each.reference, each.projects, why, renamed)
        return resolved

    def every(self, references: Iterable[str]) -> list[Project]:
        """Return what `all` returns, and each project that an ambiguous reference means."""
        return meant_projects(self._resolve_one(reference) for reference in references)

    def all(self, references: Iterable[str]) -> list[Project]:
        """Return the projects that the references mean, each once, in that order.

        Raises UnknownProject if a reference means nothing, and AmbiguousReference if a reference
        without wildcards means several projects.
        """
        return meant_projects(self.resolve(references))

    def _resolve_one(self, reference: str) -> ResolvedReference:
        """Resolve one reference: first what rootsd itself prints for a project, then other words.

        rootsd prints labels with escapes, and URIs of paths. A label takes precedence over a name
        that has a backslash: rootsd never prints that name as it is.
        """
        if (path := path_of_file_uri(reference)) is not None:
            return self._resolve_word(text_of(path))
        if (text := text_of_label(reference)) is not None:
            meant = self._resolve_word(text)
            if len(meant.projects) == 1 and not meant.is_pattern:
                return replace(meant, reference=reference)
        word = self._resolve_word(reference)
        if word.projects or word.path is None or _exists(word.path):
            return word
        printed = self._by_printed_label(reference)
        return word if printed is None else replace(word, projects=(printed,))

    def _by_printed_label(self, reference: str) -> Project | None:
        """Return the project whose label, cut or typed without quotes, is `reference`, or None.

        A shell takes the backslashes out of a word without quotes.
        """
        if _CUT not in reference and not _UNQUOTED_ESCAPE.search(reference):
            return None
        fits = [
            project
            for project in self.catalog.projects.values()
            if reference in _forms_of_label(self.catalog.name_of(project))
            or reference in _forms_of_label(text_of(project.path))
        ]
        return fits[0] if len(fits) == 1 else None

    def _resolve_word(self, reference: str) -> ResolvedReference:
        """Resolve one reference: first as a name or an id, then as a path, then as a glob.

        A word that is the name of one project and the id of another is ambiguous. The author of a
        project chooses its name, so a name must not take precedence over an id.
        """
        catalog = self.catalog
        named, identified = self.catalog.named_paths.get(reference), catalog.ids.get(reference)
        if named is not None and identified is not None and named != identified:
            choices = (safe_label(named, limit=None), safe_label(identified, limit=None))
            message = f"{safe_label(reference)} is a name and an id"
            raise AmbiguousReference(message, "rootsd ls", typed=reference, choices=choices)
        known = named if named is not None else identified
        if known is not None:
            return ResolvedReference(reference, (catalog.projects[known],))
        path = bytes_of(reference) if looks_like_uri(reference) else self.real_path(reference)
        at_path = catalog.projects.get(path)
        if projects := self._by_ending(reference) if at_path is None else (at_path,):
            return ResolvedReference(reference, projects, path)
        if is_glob(reference):
            matches = tuple(self._by_glob(reference))
            return ResolvedReference(reference, matches, path, is_pattern=True)
        was = catalog.projects.get(catalog.reserved.get(reference, b""))
        renamed = "" if was is None else reference_to(catalog, was)
        return ResolvedReference(reference, (), path, known=catalog.named_paths, renamed=renamed)

    def _by_glob(self, pattern: str) -> list[Project]:
        """Match names, whole paths, and ends of paths with as many parts as the pattern."""
        if pattern.startswith("~/"):
            pattern = escape(os.path.expanduser("~")) + pattern[1:]
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

    def _by_ending(self, reference: str) -> tuple[Project, ...]:
        """Return the projects whose name or path ends with `reference`.

        `api` matches the names `acme/api` and `api~r7k2`. Only a reference of two components or
        more matches the end of a path. An absolute path never does.
        """
        if reference.startswith("/"):
            return ()
        catalog = self.catalog
        ending = "/" + reference
        is_of_path = "/" in reference
        return tuple(
            project
            for project in catalog.projects.values()
            if (name := catalog.name_of(project)).endswith(ending)
            or name == f"{reference}{ID_SEPARATOR}{project.id}"
            or (is_of_path and text_of(project.path).endswith(ending))
        )


def several_match(
    catalog: Catalog,
    reference: str,
    projects: Sequence[Project],
    why_one: str = "",
    likely: Project | None = None,
) -> AmbiguousReference:
    """Return the error for a reference that means several projects; `why_one` follows that.

    Its first choice is the `likely` project, which need not be one of them.
    """
    count = "1 project" if len(projects) == 1 else f"{len(projects):,} projects"
    choices = sorted(reference_to(catalog, project) for project in projects)
    if likely is not None:
        choices.insert(0, reference_to(catalog, likely))
    return AmbiguousReference(
        f"{safe_label(reference, limit=None)} matches {count}{why_one}",
        f"rootsd ls {shlex.quote(safe_label(reference, limit=None))}",
        typed=reference,
        choices=list(dict.fromkeys(choices))[:_MAX_CHOICES],
    )


def similar_names(reference: str, names: Iterable[str]) -> list[str]:
    """Return names that are nearly `reference`, or whose last part is. They need no quotes."""
    ends: dict[str, list[str]] = {}
    for name in filter(_SHELL_SAFE.fullmatch, names):
        for end in {name, name.rpartition("/")[2]}:
            ends.setdefault(end, []).append(name)
    found = (name for end in nearest(reference, ends, _MAX_SIMILAR) for name in ends[end])
    return list(dict.fromkeys(found))[:_MAX_SIMILAR]


def _exists(path: bytes) -> bool:
    """Return whether something is there. What does not respond counts as something."""
    return not may_follow(path) or os.path.lexists(path)


def _forms_of_label(text: str) -> tuple[str, ...]:
    """Return the forms of a label that has escapes, or that is cut, as a person may type it."""
    whole, cut = safe_label(text, limit=None), safe_label(text)
    unquoted = [label.replace("\\", "") for label in (whole, cut)] if "\\" in whole else []
    return (cut, *unquoted)


_FORBIDDEN_CHARACTERS = frozenset("*?[")
_FORBIDDEN_PREFIXES = {"/": "a path", "~": "a path", "-": "a flag", "tag:": "a tag"}
_REMEDY = "rootsd rename --help"


def check_label(word: str) -> None:
    """Raise BadRequest for a word that no project can have as its name or tag."""
    if safe_label(word) != word or word in (".", ".."):
        raise BadRequest(
            f"{safe_label(word)} cannot be a name or a tag: use up to 64 visible characters,"
            " and no path"
        )
    for prefix, meaning in _FORBIDDEN_PREFIXES.items():
        if word.startswith(prefix):
            raise BadRequest(
                f"{word} cannot be a name or a tag: it would be read as {meaning}", _REMEDY
            )


def check_name(name: str, path: bytes, catalog: Catalog) -> None:
    """Raise BadRequest for a word that cannot be the name of the project at `path`.

    The end of its own path is always a valid name: `acme/api` for `/src/acme/api`.
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
    """Raise BadRequest for a word that cannot be a tag."""
    check_label(tag)
    _check_no_id(tag, None, catalog)
    if "/" in tag:
        raise BadRequest(f"{tag} cannot be a tag: it would be read as a path", "rootsd tag --help")
    _check_no_glob(tag)


def _check_no_id(word: str, path: bytes | None, catalog: Catalog) -> None:
    holder = catalog.ids.get(word)
    if holder is not None and holder != path:
        where = safe_label(holder, limit=None)
        raise BadRequest(f"{word} is the id of {where}", "rootsd ls")


def _check_no_glob(word: str) -> None:
    if not _FORBIDDEN_CHARACTERS.isdisjoint(word):
        raise BadRequest(f"{word} cannot be a name or a tag: it would be read as a glob", _REMEDY)
