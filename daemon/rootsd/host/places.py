"""Where the daemon keeps what lasts: configuration, store and logs.

Apart from `folders`, since platformdirs is too slow for the lean programs, and they need none of
these. The daemon records what it found here; others ask it instead of finding it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import platformdirs

from rootsd.host.folders import overriding_folder


@dataclass(frozen=True, slots=True)
class Places:
    """Three folders; none of them need exist."""

    config: bytes
    state: bytes
    log: bytes

    @property
    def config_file(self) -> bytes:
        """What `rootsd config edit` opens."""
        return self.config + b"/config.toml"


def find_places(remembered: Mapping[str, str] | None = None) -> Places:
    """The folders as platformdirs has them, or all below ROOTSD_DIR. Raises NoPlace.

    `remembered` are variables that count where the environment does not have them.
    """
    if top := overriding_folder():
        return Places(top + b"/config", top + b"/state", top + b"/state/log")
    dirs = platformdirs.PlatformDirs("rootsd", appauthor=False)
    config, state, log = dirs.user_config_dir, dirs.user_state_dir, dirs.user_log_dir
    missing = {k: v for k, v in (remembered or {}).items() if not os.environ.get(k)}
    if home := missing.get("XDG_CONFIG_HOME"):
        config = os.path.join(home, "rootsd")
    if home := missing.get("XDG_STATE_HOME"):
        state = os.path.join(home, "rootsd")
        log = os.path.join(state, "log")
    return Places(os.fsencode(config), os.fsencode(state), os.fsencode(log))
