"""A home folder as developers have one: dotfiles, tool chains, secrets, and projects.

`UsualHome.put_back` replaces all content by that of the start, and keeps the folders that a daemon
watches. The secrets are none: their text only looks like some.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from support.needs import uv
from support.wheelhouse import write_wheels

_FILES = {
    ".bashrc": "alias ll='ls -l'\nexport EDITOR=vim\n",
    ".profile": '. "$HOME/.bashrc"\n',
    ".inputrc": "set bell-style none\n",
    ".vimrc": "set nocompatible\nset directory=/tmp\n",
    ".tmux.conf": "set -g history-limit 5000\n",
    ".gitignore_global": "*.orig\n.DS_Store\n",
    ".gitconfig": """\
[user]
	name = A Person
	email = person@example.org
[init]
	defaultBranch = main
[core]
	excludesFile = ~/.gitignore_global
[alias]
	co = checkout
	st = status --short
	lg = log --oneline --graph
	amend = commit --amend --no-edit
	undo = !git reset -q HEAD~1 && git log -1 --format=%s HEAD
[pull]
	rebase = true
[rerere]
	enabled = true
[advice]
	detachedHead = false
[protocol "file"]
	allow = always
""",
    ".npmrc": "prefix=${HOME}/.npm-global\nupdate-notifier=false\nfund=false\naudit=false\n",
    ".ssh/config": "Host *\n    ServerAliveInterval 60\n",
    ".ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    ".ssh/known_hosts": "",
    ".aws/credentials": "[default]\naws_secret_access_key = x\n",
    ".git-credentials": "https://person:secret@git.example.org\n",
    ".cache/pip/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
    ".npm/_cacache/tmp/x": "",
}
_PROGRAMS = {
    ".local/bin/greet": "#!/bin/sh\necho hello from ~/.local/bin\n",
    ".cargo/bin/greet-cargo": "#!/bin/sh\necho hello from ~/.cargo/bin\n",
    "bin/greet-bin": "#!/bin/sh\necho hello from ~/bin\n",
    "bin/make-wheel": """#!/usr/bin/python3
import sys, zipfile
name = sys.argv[1]
with zipfile.ZipFile(f"{name}-1.0-py3-none-any.whl", "w") as wheel:
    top = f"{name}-1.0.dist-info"
    points = f"[console_scripts]\\n{name} = {name}:main\\n"
    for file, text in {
        f"{name}.py": f"def main():\\n    print('{name} runs')\\n",
        f"{top}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n",
        f"{top}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{top}/entry_points.txt": points,
        f"{top}/RECORD": "",
    }.items():
        wheel.writestr(zipfile.ZipInfo(file), text)
""",
}  # fmt: skip
_WHEELS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
PROGRAM_FOLDERS = ("bin", ".local/bin", ".cargo/bin", ".npm-global/bin", "go/bin")
_PROJECTS = """
set -e
git init -q ~/src/other && cd ~/src/other
echo other > README && git add README && git commit -qm first
git worktree add -q ../other-fix
"""


class UsualHome:
    """The folder `home`, whose folder `src` has one project with a worktree.

    `packages` is a folder of programs that npm installed; they are those of `npm install -g`.
    """

    def __init__(self, home: Path, packages: Path | None = None) -> None:
        self.home = home
        self._files, self._installed = home.with_name("files"), home.with_name("installed")
        for name, text in {**_FILES, **_PROGRAMS}.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        for name in _PROGRAMS:
            (home / name).chmod(0o755)
        for name in (".ssh", ".aws"):
            (home / name).chmod(0o700)
        (home / ".wheels").mkdir()
        write_wheels(home / ".wheels", _WHEELS)
        environment = {**os.environ, "HOME": str(home), "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig"}
        subprocess.run(["bash", "-c", _PROJECTS], check=True, env=environment)
        shutil.copytree(home, self._files, symlinks=True)
        _install(packages, self._installed)

    def put_back(self) -> None:
        """Replace what is in the home."""
        for child in [*self.home.iterdir(), *(self.home / "src").iterdir()]:
            if child.is_dir() and not child.is_symlink():
                if child.name != "src":
                    shutil.rmtree(child)
            else:
                child.unlink()
        subprocess.run(["cp", "-a", f"{self._files}/.", self.home], check=True)
        subprocess.run(["cp", "-al", f"{self._installed}/.", self.home], check=True)


def _install(packages: Path | None, home: Path) -> None:
    """Put programs into a home, as `npm install -g` does, and as the installer of uv does."""
    (home / ".npm-global" / "bin").mkdir(parents=True)
    if packages is not None:
        modules = home / ".npm-global" / "lib" / "node_modules"
        shutil.copytree(packages.parent, modules, symlinks=True)
        for program in packages.iterdir():
            target = os.readlink(program).removeprefix("../")
            program_link = home / ".npm-global" / "bin" / program.name
            program_link.symlink_to(f"../lib/node_modules/{target}")
    if found := uv():
        (home / ".local" / "bin").mkdir(parents=True)
        shutil.copy(found, home / ".local" / "bin" / "uv")
