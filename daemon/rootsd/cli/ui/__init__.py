"""`rootsd ui`: pending projects, roots, and sessions on one screen, live.

How it works:

* `live` talks to the daemon. One thread holds a connection on which the daemon sends what changes
  (`rootsd.wire.follow`), so nothing polls. After a loss, the thread connects again, with growing
  pauses. Each command is a request on its own connection, in a worker thread, so the event loop
  never waits for a socket. The guard judges these requests like those of any other command.
* `board` keeps what the screen shows: rows by id, in order. It is pure.
* `orders` builds the requests for decisions. An approval carries the identities of the folders
  that the person saw, so a folder that was swapped in the meantime is not approved. It is pure.
* `details` writes the lines about a selection, risks first. It is pure.
* `widgets` has the lists. A list draws only its visible rows, so 5,000 rows cost as much as 50.
* `ordered_input` hands over the keys one at a time, so that typing ahead is safe.
* `dialogs` asks for a name, tags, a duration, or a yes. `app` connects all of these.

All text about projects is hostile. It becomes a label (`rootsd.core.labels`) and then a segment of
a line. It is never parsed as markup.

The screen uses the 16 colors of the terminal on its own background. So it is readable in light
and dark themes, and without color: the row under the cursor is in reverse video, and a mark is a
star.
"""
