"""Plan the files of the service, and compare them with those that are installed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.files.private_files import make_folder, replace_private_file
from rootsd.processes.command_path import installed_command
from rootsd.service import start_record, unit_files
from rootsd.service.launchd import Launchd
from rootsd.service.manager import ServiceManager
from rootsd.sync.record import SyncRecord


class ForeignServiceFile(RootsdError):
    """A file that the installation would write exists, and is not from rootsd."""


class ServiceFiles(Struct, frozen=True):
    """The files of the service, by path, and the surplus files that rootsd wrote earlier."""

    settings: unit_files.UnitSettings
    files: Mapping[Path, str]
    surplus: Sequence[Path]

    def stale(self) -> list[Path]:
        """Return the files that are missing or have another text."""
        return [file for file, text in self.files.items() if _text_of(file) != text]

    def outdated(self) -> str:
        """Return a clause that names the stale files and says why they are, or an empty text.

        A file is missing if the version that wrote the others did not know it.
        """
        stale = self.stale()
        missing = [file for file in stale if not file.exists()]
        changed = [file for file in stale if file not in missing]
        if missing and len(missing) < len(self.files):
            clauses = [f"{_names(missing)} missing"]
            clauses += [f"{_names(changed)} different"] if changed else []
            return f"an older version wrote the service: {' and '.join(clauses)}"
        return f"{_names(stale)} was written for another version or other folders" if stale else ""

    def refuse_foreign(self) -> None:
        """Raise ForeignServiceFile if one of the files is not from rootsd."""
        for file in self.files:
            if file.exists() and not unit_files.is_generated(file):
                shown = safe_label(str(file), limit=None)
                raise ForeignServiceFile(
                    f"{shown} exists, and is not from rootsd", f"mv {shown} {shown}.old"
                )

    def write(self) -> None:
        """Write the stale files, and remove the surplus ones."""
        for file in self.stale():
            make_folder(file.parent)
            replace_private_file(file, self.files[file].encode())
        for file in self.surplus:
            file.unlink()


def plan_files(
    invocation: Invocation, managing: ServiceManager, *, strict: bool | None
) -> ServiceFiles:
    """Return the files that `install_service` writes; `strict` None keeps the current choice."""
    folder = managing.folder
    if strict is None:
        strict = unit_files.is_generated(folder / unit_files.STRICT_DROP_IN)
    settings = _unit_settings(invocation, strict=strict)
    is_launchd = isinstance(managing, Launchd)
    named = (
        unit_files.launchd_agents(settings) if is_launchd else unit_files.systemd_units(settings)
    )
    known = unit_files.AGENTS if is_launchd else unit_files.ALL_UNITS
    surplus = [folder / name for name in known if name not in named]
    return ServiceFiles(
        settings,
        {folder / name: text for name, text in named.items()},
        [file for file in surplus if unit_files.is_generated(file)],
    )


def _unit_settings(invocation: Invocation, *, strict: bool) -> unit_files.UnitSettings:
    plan, places = start_record.plan_start(), invocation.places
    state, data = (Path(os.fsdecode(place)) for place in (places.state, places.data))
    writable = dict.fromkeys((state, data, plan.folder, plan.logs))
    return unit_files.UnitSettings(
        plan,
        command=installed_command(),
        writable=tuple(
            folder
            for folder in writable
            if not any(folder != other and folder.is_relative_to(other) for other in writable)
        ),
        synced=SyncRecord(places.state).clients_file,
        strict=strict,
    )


def _names(files: Sequence[Path]) -> str:
    return ", ".join(safe_label(file.name) for file in files)


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
