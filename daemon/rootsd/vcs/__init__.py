"""Version control systems: recognize a repository, and tell whether it is complete.

`probe` observes one folder. It looks up the folder's kind in `registry` and asks that kind for the
state: a `CompleteProject`, a `PendingProject` with its stage, or `NoProject`. `stages` says how
long a stage must be quiet before it is final. `base` has the protocol of a kind, and explains how
to add one. `verify` checks before each answer that approved roots are still the approved folders.

No function here runs a program of a VCS or opens its database in place.
"""
