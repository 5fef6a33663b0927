"""Locate the folders for configuration, state, logs, and the second anchor.

They are apart from `folders`, because platformdirs is too slow for the lean programs, which need
none of them. The daemon records the folders that it found; other programs ask the daemon.

The folder of the second anchor does not depend on any XDG variable, as the runtime folder does
not. A program that looked for the anchor in another folder would take it for missing, and the
approvals would lapse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import platformdirs

from rootsd.system.runtime_dir import home_folder, overriding_folder


@dataclass(frozen=True, slots=True)
class Places:
    """Four folders, which need not exist. `data` holds the second anchor."""

    config: bytes
    state: bytes
    log: bytes
    data: bytes

    @property
    def config_file(self) -> bytes:
        """What `rootsd config edit` opens."""
        return self.config + b"/config.toml"


def find_places(remembered: Mapping[str, str] | None = None) -> Places:
    """The folders as platformdirs has them, or all below ROOTSD_DIR. Raises NoPlace.

    `remembered` are variables that count where the environment does not have them.
    """
    if top := overriding_folder():
        return Places(top + b"/config", top + b"/state", top + b"/state/log", top + b"/data")
    dirs = platformdirs.PlatformDirs("rootsd", appauthor=False)
    config, state, log = dirs.user_config_dir, dirs.user_state_dir, dirs.user_log_dir
    missing = {k: v for k, v in (remembered or {}).items() if not os.environ.get(k)}
    if home := missing.get("XDG_CONFIG_HOME"):
        config = os.path.join(home, "rootsd")
    if home := missing.get("XDG_STATE_HOME"):
        state = os.path.join(home, "rootsd")
        log = os.path.join(state, "log")
    return Places(os.fsencode(config), os.fsencode(state), os.fsencode(log), _data_folder())


def _data_folder() -> bytes:
    # Folders that nobody synchronizes between machines. On macOS that is not the folder of the
    # state, which platformdirs gives for data too.
    inner = b"Library/Preferences" if sys.platform == "darwin" else b".local/share"
    return b"/".join((home_folder().rstrip(b"/"), inner, b"rootsd"))
