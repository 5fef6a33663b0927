"""Watch folders for changes with inotify, FSEvents, or polling.

A watcher watches individual folders, each for a purpose. For each event, the watcher's own thread
posts a *resolver*: a function without arguments. The thread that owns the watcher calls it and
gets the event with its paths.

Nothing acts on an event alone: an event only names a folder to check. After an overflow, discovery
checks every folder.
"""
