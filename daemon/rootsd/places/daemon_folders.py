"""Locate the folders for configuration, state, logs, and the second anchor.

The daemon records the folders that it found. Lean programs, which need none of these folders, ask
the daemon.

The folder of the second anchor does not depend on an XDG variable. A program with another value of
the variable would not find the anchor, and the approvals would lapse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec import Struct

from rootsd.places.base_folders import PLACE_VARIABLES, base_folder, log_folder, named_folder
from rootsd.places.runtime_dir import home_folder, overriding_folder


class Places(Struct, frozen=True):
    """The four folders of rootsd, which need not exist. `data` holds the second anchor."""

    config: bytes
    state: bytes
    log: bytes
    data: bytes

    @property
    def config_file(self) -> bytes:
        """The file that `rootsd config edit` opens."""
        return self.config + b"/config.toml"


def find_places(remembered: Mapping[str, str] | None = None) -> Places:
    """Return the folders of this user, or folders below ROOTSD_DIR if that is set.

    `remembered` has variables to use if the environment lacks them. Raises FolderUnavailable.
    """
    environment = {
        name: named_folder(name, os.environ) or named_folder(name, remembered or {})
        for name in PLACE_VARIABLES
    }
    log = os.fsencode(log_folder(environment))
    if top := overriding_folder():
        return Places(top + b"/config", top + b"/state", log, top + b"/data")
    config, state = (
        os.fsencode(os.path.join(base_folder(name, environment), "rootsd"))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    )
    return Places(config, state, log, _data_folder())


def _data_folder() -> bytes:
    # Choose a folder that people do not synchronize between machines. On macOS, state and data
    # usually have the same one.
    inner = b"Library/Preferences" if sys.platform == "darwin" else b".local/share"
    return b"/".join((home_folder().rstrip(b"/"), inner, b"rootsd"))
