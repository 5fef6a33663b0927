"""Choose the best watcher for this system."""

from __future__ import annotations

import sys

from rootsd.watch.events import PostResolver, Watcher, WatchOutcome
from rootsd.watch.polling import PollingWatcher

if sys.platform == "linux":
    from rootsd.watch.inotify import InotifyWatcher

    def best_watcher(post: PostResolver) -> Watcher:
        """Return an inotify watcher, or polling if the user has no inotify instances left."""
        try:
            return InotifyWatcher(post)
        except OSError:
            return PollingWatcher(WatchOutcome.NO_INSTANCE)

elif sys.platform == "darwin":
    from rootsd.watch.fsevents import FSEventsWatcher

    def best_watcher(post: PostResolver) -> Watcher:
        """Return an FSEvents watcher, which every macOS supports."""
        return FSEventsWatcher(post)

else:

    def best_watcher(post: PostResolver) -> Watcher:  # noqa: ARG001
        """Return a polling watcher, because rootsd gets no events on this system."""
        return PollingWatcher()
