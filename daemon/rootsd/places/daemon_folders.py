"""Locate the folders for configuration, state, logs, and the second anchor.

This module is separate from `runtime_dir`, because the lean programs need none of these folders.
The daemon records the folders that it found. Other programs ask the daemon.

The folder of the second anchor does not depend on an XDG variable. A program with another value of
the variable would not find the anchor, and the approvals would lapse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from rootsd.places.base_folders import PLACE_VARIABLES, base_folder, named_folder
from rootsd.places.runtime_dir import home_folder, overriding_folder


class Places(NamedTuple):
    """The folders of rootsd's own files, which need not exist."""

    config: bytes
    """The folder of the configuration."""
    state: bytes
    """The folder of decisions."""
    log: bytes
    """The folder of logs."""
    data: bytes
    """The folder of the second record of the latest decision."""

    @property
    def config_file(self) -> bytes:
        """The file that `rootsd config edit` opens."""
        return self.config + b"/config.toml"


def find_places(remembered: Mapping[str, str] | None = None) -> Places:
    """Return the folders of platformdirs, or folders below ROOTSD_DIR if that is set.

    `remembered` has variables to use if the environment lacks them. Raises FolderUnavailable.
    """
    if top := overriding_folder():
        return Places(top + b"/config", top + b"/state", top + b"/state/log", top + b"/data")
    environment = {
        name: named_folder(name, os.environ) or named_folder(name, remembered or {})
        for name in PLACE_VARIABLES
    }
    config = os.path.join(base_folder("XDG_CONFIG_HOME", environment), "rootsd")
    state = os.path.join(base_folder("XDG_STATE_HOME", environment), "rootsd")
    log = os.path.join(state, "log")
    if sys.platform == "darwin" and not environment["XDG_STATE_HOME"]:
        import platformdirs  # noqa: PLC0415  # only macOS needs it

        log = platformdirs.user_log_dir("rootsd", appauthor=False)
    return Places(os.fsencode(config), os.fsencode(state), os.fsencode(log), _data_folder())


def _data_folder() -> bytes:
    # Choose a folder that people do not synchronize between machines. On macOS, platformdirs would
    # return the same folder for state and data.
    inner = b"Library/Preferences" if sys.platform == "darwin" else b".local/share"
    return b"/".join((home_folder().rstrip(b"/"), inner, b"rootsd"))
