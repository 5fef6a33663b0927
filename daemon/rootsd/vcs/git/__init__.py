"""Git repositories, read without running git.

`kinds` implements the protocol of `rootsd.vcs.base`. A git checkout is checked exactly: its packs,
its index, and the files of the index must be there.
"""
