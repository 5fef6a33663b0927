"""Version control systems: recognize repositories, and tell whether they are complete.

`probe` observes one folder. It finds the folder's kind in `registry` and asks that kind for the
state: a `CompleteProject`, a `PendingProject` with its stage, or `NoProject`. `stages` says how
long each stage must be quiet before it is final. `base` defines what a kind must implement, and
explains how to add one. `verify` checks, before each answer, that each approved root is still the
folder that was approved.

No function here runs a VCS program, or opens the database of a VCS in place.
"""
