"""Report the last upgrade of the store, as new until a person has seen it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from rootsd.state.store.upgrade import StoreUpgrade, read_upgrade, save_upgrade
from rootsd.system.private_files import NotPrivate

log = logging.getLogger(__name__)


class UpgradeNotice:
    """The last upgrade of the store in `folder`. Without one, `upgrade` is None."""

    def __init__(self, folder: Path, upgrade: StoreUpgrade | None) -> None:
        self.folder = folder
        self.upgrade = upgrade

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Return the notice of the store in `folder`. A record that is unusable counts as none."""
        try:
            return cls(folder, read_upgrade(folder))
        except NotPrivate as error:
            log.warning("the last upgrade is not known: %s", error)
            return cls(folder, None)

    @property
    def is_new(self) -> bool:
        """Whether there is an upgrade whose summary no person has seen."""
        return self.upgrade is not None and not self.upgrade.is_seen

    def mark_seen(self) -> None:
        """Record that a person has seen the summary. If the disk refuses it, it appears again."""
        if self.upgrade is None or self.upgrade.is_seen:
            return
        self.upgrade = replace(self.upgrade, is_seen=True)
        try:
            save_upgrade(self.folder, self.upgrade)
        except NotPrivate as error:
            log.warning("the upgrade stays new after the next start: %s", error)


NO_UPGRADE = UpgradeNotice(Path("/"), None)
