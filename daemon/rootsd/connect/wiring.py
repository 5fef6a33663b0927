"""Edit the files of one client: connect it, wrap its servers, and take everything back.

A connect first takes the text without our earlier changes, and then makes all changes again. So it
can be repeated, and the record always describes the whole difference. If nobody has touched the
file, that text is the one that was kept. Otherwise each change is taken back by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rootsd.agents.forms.client import ClientLock, ToolFile
from rootsd.connect.adopt import hook_use, worktree_maker
from rootsd.connect.base import ClientHome, HookUse, WorktreeMaker, hook_items, possible_use
from rootsd.connect.client_files import ClientFiles, ToolAccess, Wiring, wraps_in
from rootsd.connect.edits import (
    AppendedItems,
    Change,
    add_agents,
    add_entry,
    append_items,
    take_back,
    with_containers,
    wrap_server,
)
from rootsd.connect.record import ChangedFile, digest
from rootsd.connect.servers import BRIDGE, HOOK
from rootsd.core.errors import RootsdError
from rootsd.files.private_files import display_path
from rootsd.settings.client_lock import hold_lock_folder
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable
from rootsd.settings.settings_folders import make_folders, remove_folders


class WiringIncomplete(RootsdError):
    """A file was written, and then another one could not be."""


class Consent(Enum):
    """Whether a person accepts the change of a file that is a symlink or in a repository."""

    NONE = "none"
    GIVEN = "given"


class FileChange(Struct, frozen=True):
    """The text of one file before and after. None stands for no file."""

    path: Path
    before: str | None
    after: str | None


Apply = Callable[[str], tuple[str, list[Change]]]


class ClientWiring(ClientFiles):
    """The configuration files of a client, and what `connect` and `disconnect` change there."""

    def wish_again(self, wish: Wiring) -> Wiring:
        """Return `wish` with everything that earlier calls wrote."""
        now = self.state()
        adopted = [change for path in self.own_files() for change in self.adopted(path)]
        earlier = {**wraps_in(adopted), **now.ours.wraps}
        lists = {change.keys for change in adopted if isinstance(change, AppendedItems)}
        facts = self._client.facts
        has_tools = facts.tools is not None and facts.tools.keys in lists
        is_allowed = has_tools or ToolAccess.ALLOW in (now.ours.tools, wish.tools)
        tools = ToolAccess.ALLOW if is_allowed else ToolAccess.ASK
        there = hook_use(adopted) if facts.hook is not None else HookUse.NO
        uses = (wish.hook, now.ours.hook, there)
        hook = next((use for use in uses if use is not HookUse.NO), HookUse.NO)
        wraps, agents = {**earlier, **wish.wraps}, {**wish.agents, **now.ours.agents}
        makers = (wish.worktrees, now.ours.worktrees, worktree_maker(adopted))
        maker = WorktreeMaker.ROOTSD if WorktreeMaker.ROOTSD in makers else WorktreeMaker.CLIENT
        return replace(wish, tools=tools, hook=hook, wraps=wraps, agents=agents, worktrees=maker)

    def special_reasons(self, wish: Wiring) -> list[str]:
        """Return why a person must accept the change of a file: a symlink, or version control."""
        known = self._record.files(self._client.facts.name)
        found = []
        for path, _ in self._tasks(wish):
            if (own := known.get(str(path))) is not None and own.is_accepted:
                continue
            if reason := SettingsFile(path).special_reason():
                found.append(reason)
        return found

    def plan(self, wish: Wiring | None) -> list[FileChange]:
        """Return what `connect` would change, or for None what `disconnect` would.

        Raises NotEditable and RootsdError.
        """
        known = self._record.files(self._client.facts.name)
        plans = []
        for path, apply in self._all_tasks(wish, known):
            if apply is _unchanged and self._other_homes(known.get(str(path))):
                continue
            text = SettingsFile(path).read()
            base, _ = self._restored(path, text, known.get(str(path)))
            plans.append(FileChange(path, text, self._applied(path, base, apply)[0]))
        return [plan for plan in plans if plan.before != plan.after]

    def connect(self, wish: Wiring, consent: Consent) -> list[FileChange]:
        """Write our entry, and what else a person wants. Return the files that changed.

        Raises NotEditable and RootsdError.
        """
        return self._change(wish, consent)[0]

    def take_back(self, wish: Wiring | None) -> tuple[list[FileChange], list[str]]:
        """Take back our changes, except for what is in `wish`.

        Return the changed files, and a sentence for each change that a person replaced. Raises
        NotEditable and RootsdError.
        """
        return self._change(wish, Consent.GIVEN if wish is None else Consent.NONE)

    def _change(self, wish: Wiring | None, consent: Consent) -> tuple[list[FileChange], list[str]]:
        changes: list[FileChange] = []
        left: list[str] = []
        with self._record.locked():
            known = self._record.files(self._client.facts.name)
            tasks = self._all_tasks(wish, known)
            for path, apply in tasks:
                self._ensure_possible(path, apply, known.get(str(path)), consent)
            for path, apply in tasks:
                own = known.get(str(path))
                if apply is _unchanged and (others := self._other_homes(own)) and own is not None:
                    self._record.save(
                        self._client.facts.name, str(path), replace(own, homes=others)
                    )
                    continue
                made = own.made_folders if own else ()
                if apply is not _unchanged:
                    made += make_folders(path.parent)
                is_accepted = consent is Consent.GIVEN or (own is not None and own.is_accepted)
                homes = {**self._other_homes(own), self._home_place: self._home}
                new = ChangedFile(None, "", (), is_accepted, made, homes=homes)
                try:
                    with self._locked(path):
                        change, sentences = self._rewrite(path, apply, new)
                except (NotEditable, RootsdError) as error:
                    if not changes:
                        raise
                    raise _incomplete(changes, path, error) from error
                changes += [change] if change.before != change.after else []
                left += sentences
        return changes, left + (self._staying(left) if wish is None else [])

    def _ensure_possible(
        self, path: Path, apply: Apply, own: ChangedFile | None, consent: Consent
    ) -> None:
        """Make the edit without writing it.

        Raises NotEditable for the settings, and SettingsUnusable, which names another file.
        """
        is_accepted = consent is Consent.GIVEN or (own is not None and own.is_accepted)
        file = SettingsFile(path, is_accepted, self._consent_command())
        file.ensure_writable()
        try:
            base, _ = self._restored(path, file.read(), own)
            self._applied(path, base, apply)
        except NotEditable as error:
            if path == self.settings:
                raise
            shown = display_path(path)
            raise SettingsUnusable(f"{shown} is not edited: {error}", f"ls -l {shown}") from error

    def _consent_command(self) -> str:
        return f"rootsd connect {self._client.facts.name} --yes"

    def _staying(self, said: Sequence[str]) -> list[str]:
        """Return a sentence for each entry of rootsd that is still there."""
        return [
            f"the entry {label} runs rootsd, but not in the form that rootsd writes, so it stays"
            for label in (entry.server.label for entry in self.rootsd_entries())
            if not any(f" {label} " in sentence for sentence in said)
        ]

    def _rewrite(self, path: Path, apply: Apply, new: ChangedFile) -> tuple[FileChange, list[str]]:
        """Edit one file, and record the changes before they are in the file."""
        name = self._client.facts.name
        old = self._record.files(name).get(str(path))
        result = FileChange(path, None, None)
        left: list[str] = []
        has_changes = False

        def change(text: str | None) -> str | None:
            nonlocal result, left, has_changes
            base, left = self._restored(path, text, old)
            after, changes = self._applied(path, base, apply)
            has_changes = bool(changes)
            values = self._language(path).values
            if old is not None and _is_done(text, after, old, changes, values):
                result = FileChange(path, text, text)
                if old.homes != new.homes:
                    self._record.save(name, str(path), replace(old, homes=new.homes))
                return text
            if has_changes:
                changes = with_containers(changes, old.changes if old else ())
                own = replace(new, before=base, after=digest(after), changes=tuple(changes))
                self._record.save(name, str(path), own)
            result = FileChange(path, text, after)
            return after

        SettingsFile(path, new.is_accepted, self._consent_command()).update(change)
        if not has_changes:
            self._record.save(name, str(path), None)
            remove_folders(new.made_folders)
        return result, left

    def _restored(
        self, path: Path, text: str | None, own: ChangedFile | None
    ) -> tuple[str | None, list[str]]:
        """Return the text without our changes, and a sentence for each that stays."""
        if text is None:
            return text, []
        if own is None:
            return take_back(self._client, text, self._adopted_in(path, text))
        if digest(text) == own.after:
            return own.before, []
        base, left = take_back(self._client, text, own.changes)
        base, _ = take_back(self._client, base, self._adopted_in(path, base))
        new_file = "".join(self._language(path).new_file.split())
        is_ours_alone = own.before is None and "".join(base.split()) == new_file
        return None if is_ours_alone else base, left

    def _applied(
        self, path: Path, base: str | None, apply: Apply
    ) -> tuple[str | None, list[Change]]:
        language = self._language(path)
        after, changes = apply(language.new_file if base is None else base)
        if not changes:
            return base, []
        return language.lay_out(after) if base is None else after, changes

    def _all_tasks(
        self, wish: Wiring | None, known: dict[str, ChangedFile]
    ) -> list[tuple[Path, Apply]]:
        """Return the edit of each file that is wanted, and none for the others of this home.

        The last file comes first in these: the first one knows which folders to remove.
        """
        tasks = self._tasks(wish) if wish is not None else []
        wanted = {str(path) for path, _ in tasks}
        own = [path for path, changed in known.items() if self._home_place in changed.homes]
        others = [Path(path) for path in reversed(own) if path not in wanted]
        if wish is None:
            # The hook first: a strict one refuses each call if its program is gone.
            own_files = reversed(self.own_files())
            others += [path for path in own_files if str(path) not in known and self.adopted(path)]
        return tasks + [(path, _unchanged) for path in others]

    def _other_homes(self, own: ChangedFile | None) -> dict[str, ClientHome]:
        """Return the other homes of the client that a file belongs to."""
        homes = own.homes if own is not None else {}
        return {place: home for place, home in homes.items() if place != self._home_place}

    def _tasks(self, wish: Wiring) -> list[tuple[Path, Apply]]:
        tools = self._client.facts.tools if wish.tools is ToolAccess.ALLOW else None
        extra = tools.members if tools is not None and tools.where is ToolFile.ENTRY else {}

        def wire(text: str) -> tuple[str, list[Change]]:
            words = (wish.rootsd, BRIDGE)
            return add_entry(self._client, text, words, extra, wish.variables)

        edits: list[Apply] = [wire] if self._client.facts.keys else []
        if wish.agents:
            edits.append(
                partial(
                    add_agents, self._client, commands=wish.agents, rootsd=wish.rootsd,
                    variables=wish.variables,
                )
            )  # fmt: skip
        tasks: dict[Path, list[Apply]] = {self.settings: edits}
        files = self._places() if wish.wraps else {}
        for server, wrap in wish.wraps.items():
            edit = partial(wrap_server, self._client, server=server, wrap=wrap, rootsd=wish.rootsd)
            tasks.setdefault(files.get(server, self.settings), []).append(edit)
        if tools is not None and tools.place is not None:
            path = self._environment.locate(tools.place)
            tasks[path] = [partial(append_items, keys=tools.keys, items=tools.items)]
        hook = self._client.facts.hook
        use = possible_use(hook, wish.hook) if hook is not None else HookUse.NO
        if hook is not None and use is not HookUse.NO:
            places = [f"{name}={value}" for name, value in wish.variables.items()]
            front = ["env", *places] if places else []
            name = self._client.facts.name
            words = [*front, wish.rootsd, HOOK, name]
            items = hook_items(name, hook, use, words, wish.worktrees)
            added = [
                partial(append_items, keys=keys, items=those) for keys, those in items.items()
            ]
            tasks.setdefault(self._environment.locate(hook.place), []).extend(added)
        return [(path, partial(_apply_all, edits=edits)) for path, edits in tasks.items()]

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        if self._client.facts.lock is not ClientLock.FOLDER or path != self.settings:
            yield
            return
        try:
            with hold_lock_folder(path):
                yield
        except OSError as error:
            shown, why = display_path(path), error.strerror or str(error)
            raise SettingsUnusable(
                f"{shown} cannot be locked: {why}", f"ls -ld {display_path(path.parent)}"
            ) from error


def _incomplete(
    changes: Sequence[FileChange], path: Path, error: NotEditable | RootsdError
) -> WiringIncomplete:
    """Return the error for a file that could not be written after others were."""
    done = " and ".join(display_path(change.path) for change in changes)
    remedy = error.remedy if isinstance(error, RootsdError) else ""
    return WiringIncomplete(f"{done} was changed, but not {display_path(path)}: {error}", remedy)


def _unchanged(text: str) -> tuple[str, list[Change]]:
    return text, []


def _apply_all(text: str, edits: Sequence[Apply]) -> tuple[str, list[Change]]:
    changes: list[Change] = []
    for edit in edits:
        text, more = edit(text)
        changes += more
    return text, changes


def _is_done(
    text: str | None,
    after: str | None,
    old: ChangedFile,
    changes: Sequence[Change],
    values: Callable[[str], dict[str, Any]],
) -> bool:
    """Return whether a text that others changed has all wanted values already."""
    if text is None or after is None or digest(text) == old.after:
        return False
    return len(changes) == len(old.changes) and values(text) == values(after)
