"""Find projects below the parents, and follow their changes.

`service` runs everything in one thread. `engine` holds the state and explains how an event becomes
an observation. Below it:

* `parent_tree` has the folders of a parent, stored in a `folder_tree`. `mount_context` tells it
  where to stop and what to avoid.
* `candidates` follows projects that are being created.
* `worktrees` follows the links from repositories to their worktrees.
* `tracked` remembers what was reported, and which projects no tree holds.

`periodic` schedules polls and snapshots, and `status` describes the result for people.
"""
