"""Read git repositories without running git.

`kinds` implements the protocol in `rootsd.vcs.base`. For git, rootsd checks exactly whether a
checkout is complete: the packs, the index, and the files in the index must exist.
"""
