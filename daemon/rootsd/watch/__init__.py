"""Watch folders for changes, by inotify, FSEvents, or polling.

A watcher watches chosen folders, each for a purpose, and posts a resolver for each event from its
own thread. The thread that owns the watcher calls the resolver, which returns the event with its
paths. An event is a hint where to look, never a fact. After an overflow, everything is checked.
"""
