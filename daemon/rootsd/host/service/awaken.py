"""Start the daemon for a bridge of version 0.1.0, which knows this program by its old name."""

from __future__ import annotations

from rootsd.service.autostart import main

if __name__ == "__main__":
    main()
