"""What a person's settings name is visible behind the wall, and no secret is.

Each synthetic home has about 20 secrets at usual places, and more where its own settings lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.walls import Wall, Weakness

SECRET = "TOPSECRET-9f8e7d6c5b"  # noqa: S105 - it is planted
USUAL_SECRETS = b"""
    .ssh/id_ed25519 .ssh/config .aws/credentials .netrc .git-credentials .config/gh/hosts.yml
    .docker/config.json .kube/config .gnupg/private-keys-v1.d/k .cargo/credentials.toml
    .config/git/credentials .bash_history .password-store/x.gpg Documents/tax.txt
    .local/share/keyrings/login.keyring .pypirc .config/gcloud/key.json .config/uv/credentials
    src/pending/.env src/pending/notes
""".decode().split()
# A settings file with a secret and a harmless line.
MIXED_SECRETS = {
    ".npmrc": f"registry=https://r.example\n//r.example/:_authToken={SECRET}\n",
    ".yarnrc.yml": f'npmRegistryServer: "https://r.example"\nnpmAuthToken: {SECRET}\n',
    ".m2/settings.xml": f"<settings><id>r.example</id><password>{SECRET}</password></settings>\n",
    ".gradle/gradle.properties": f"org.gradle.daemon=r.example\nsigning.password={SECRET}\n",
}


class Home(NamedTuple):
    """A home: files, links, and programs by path, variables, and what must be visible.

    In all of them, `~` is the home folder, and in contents, `SECRET` is a secret.
    """

    name: str
    files: Mapping[str, str] = {}
    links: Mapping[str, str] = {}
    programs: Iterable[str] = ()
    variables: Mapping[str, str] = {}
    visible: Iterable[str] = ()
    hidden: Iterable[str] = ()

    def make(self, home: Path) -> dict[str, str]:
        """Make the home, and return the variables."""
        for path in USUAL_SECRETS:
            _write(home / path, f"token = {SECRET}\n")
        for path, text in MIXED_SECRETS.items():
            _write(home / path, text)
        (home / "src/pending/.git").mkdir()
        for path, text in self.files.items():
            _write(home / path, text.replace("~", str(home)).replace("SECRET", SECRET))
        for path in self.programs:
            _write(home / path, "ELF")
            (home / path).chmod(0o755)
        for path, target in self.links.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).symlink_to(target.replace("~", str(home)))
        return {name: text.replace("~", str(home)) for name, text in self.variables.items()}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if text.startswith("#!"):
        path.chmod(0o755)


HOMES = [
    Home(
        "stow",
        {
            "dotfiles/git/.gitconfig": "[user]\n name=a\n"
            '[includeIf "gitdir:~/work/"]\n path=~/.gitconfig-work\n'
            "[core]\n hooksPath=~/.githooks\n excludesFile=~/.gi\n[alias]\n x=!~/.git-x\n",
            ".gitconfig-work": "[user]\n email=w@w\n[include]\n path=.gitconfig-more\n",
            ".gitconfig-more": "[commit]\n template=~/.message\n",
            ".message": "x", ".gi": "x", ".git-x": "#!/bin/sh\n",
            ".githooks/pre-commit": "#!/bin/sh\n",
            "dotfiles/secrets/x": "SECRET", "dotfiles/.git/config": "SECRET",
            "dotfiles/zsh/.zshrc": "source ~/dotfiles/zsh/aliases.zsh\n",
            "dotfiles/zsh/aliases.zsh": "alias a=b\n", "dotfiles/fish/config.fish": "x\n",
        },
        {".gitconfig": "dotfiles/git/.gitconfig", ".zshrc": "~/dotfiles/zsh/.zshrc",
         ".config/fish": "../dotfiles/fish"},
        visible=[".gitconfig", "dotfiles/git/.gitconfig", ".gitconfig-work", ".gitconfig-more",
                 ".message", ".githooks/pre-commit", ".gi", ".git-x", ".zshrc",
                 "dotfiles/zsh/aliases.zsh", ".config/fish/config.fish"],
        hidden=["dotfiles/secrets/x", "dotfiles/.git/config"],
    ),
    Home(
        "includes of secrets",
        {
            ".gitconfig": "[include]\n path=~/.git-tokens\n[include]\n path=.gitlocal\n"
            "[include]\n path=~/.ssh/config\n[core]\n excludesFile=~/src/pending/notes\n",
            ".git-tokens": "[x]\n token=SECRET\n",
            ".gitlocal": "[user]\n name=b\n[github]\n token=SECRET\n"
            '[url "https://u:SECRET@h/"]\n insteadOf=x\n[http]\n'
            " extraHeader = Authorization: Basic SECRET\n[a]\n b=c\n",
        },
        visible=[".gitconfig", ".gitlocal"],
        hidden=[".git-tokens"],
    ),
    Home(
        "n and npm",
        {"npm/lib/node_modules/tsc/x.js": "#!/usr/bin/env node\n", "npm/etc/npmrc": "SECRET"},
        {"npm/bin/tsc": "../lib/node_modules/tsc/x.js"},
        ["n/bin/node", "n/n/versions/1/bin/node"],
        {"PATH": "~/n/bin:~/npm/bin", "N_PREFIX": "~/n", "NPM_CONFIG_PREFIX": "~/npm"},
        ["n/bin/node", "n/n/versions/1/bin/node", "npm/bin/tsc", "npm/lib/node_modules/tsc/x.js"],
        ["npm/etc/npmrc"],
    ),
    Home(
        "moved cargo and go",
        {"data/cargo/credentials.toml": "SECRET", "data/cargo/env": "x",
         "data/cargo/registry/x": "x", "data/go/pkg/mod/x": "x", "data/go/src/s": "SECRET"},
        {},
        ["data/cargo/bin/rg", "data/go/bin/tool"],
        {"PATH": "~/data/cargo/bin:~/data/go/bin", "CARGO_HOME": "~/data/cargo",
         "GOPATH": "~/data/go"},
        ["data/cargo/bin/rg", "data/cargo/env", "data/cargo/registry/x", "data/go/bin/tool",
         "data/go/pkg/mod/x"],
        ["data/cargo/credentials.toml", "data/go/src/s"],
    ),
    Home(
        "nvm in .config",
        {".config/nvm/nvm.sh": "x", ".config/nvm/.git/config": "x",
         ".config/nvm/versions/node/v1/etc/npmrc": "SECRET"},
        {},
        [".config/nvm/versions/node/v1/bin/node"],
        {"NVM_DIR": "~/.config/nvm", "PATH": "~/.config/nvm/versions/node/v1/bin"},
        [".config/nvm/nvm.sh", ".config/nvm/versions/node/v1/bin/node"],
        [".config/nvm/versions/node/v1/etc/npmrc"],
    ),
    Home(
        "hostile variables",
        {"secret.txt": "SECRET", "run.sh": "#!/bin/sh\n", "src/pending/nvm.sh": "SECRET",
         "private/letter": "SECRET", "src/pending/bin/x": "#!/bin/sh\nSECRET\n"},
        {},
        [],
        {"PATH": "~:~/.config:~/.local:~/.local/share:~/Documents:.:~/.ssh:~/src/pending/bin:/:"
         "~/private:~/src:", "NVM_DIR": "~/src/pending", "GOPATH": "~", "ZSH": "/",
         "CARGO_HOME": "~/.ssh", "JAVA_HOME": "~/private", "PNPM_HOME": "~/Documents",
         "VIRTUAL_ENV": "~/src", "PYTHONUSERBASE": "~/src/pending", "N_PREFIX": "relative"},
        hidden=["secret.txt", "src/pending/nvm.sh", "private/letter", "src/pending/bin/x"],
    ),
    Home(
        "links to secrets",
        {},
        {"bin/tool": "~/.ssh/id_ed25519", ".gitconfig": ".git-credentials",
         ".bashrc": ".aws/credentials", "bin2": "~", "x/bin": "~/.config", ".nvm": "~/.ssh",
         ".vimrc": "src/pending/.env", ".inputrc": ".inputrc", ".config/fish": "../.gnupg"},
        ["bin/fine"],
        {"PATH": "~/bin:~/bin2:~/x/bin"},
        ["bin/fine"],
        ["bin/tool", ".gitconfig", ".bashrc", ".nvm/config", ".vimrc"],
    ),
    Home(
        "shells",
        {
            ".bashrc": '. ~/.bash_aliases\n. "$HOME/.cargo/env"\nsource ~/.secrets.sh\n'
            "[ -f ~/.oh/lib.sh ] && . ~/.oh/lib.sh\nif x; then source ${HOME}/.work_tokens; fi\n"
            "source ~/.localrc\nsource ~/src/pending/notes\nsource $UNKNOWN/x\n",
            ".bash_aliases": "alias a=b\n", ".cargo/env": "x", ".secrets.sh": "SECRET",
            ".work_tokens": "SECRET", ".oh/lib.sh": "source ~/.oh/more.sh\n",
            ".oh/more.sh": "x\n", ".localrc": "export FOO_TOKEN=SECRET\nexport A=1\n",
            ".oh-my-zsh/oh-my-zsh.sh": "x", ".oh-my-zsh/custom/a.zsh": "export A_TOKEN=SECRET\n",
        },
        visible=[".bashrc", ".bash_aliases", ".cargo/env", ".oh/lib.sh", ".oh/more.sh",
                 ".localrc", ".oh-my-zsh/oh-my-zsh.sh"],
        hidden=[".secrets.sh", ".work_tokens", ".oh-my-zsh/custom/a.zsh"],
    ),
    Home(
        "tokens in shell settings",
        {".bashrc": "export OPENAI_API_KEY=SECRET\nalias a=b\n",
         ".zshenv": 'export GH_TOKEN="SECRET"\nexport A=1\n', ".profile": "PATH=x\n",
         ".zshrc": "export A_TOKEN='SECRET\nSECRET'\n", ".config/pip/pip.conf":
         "[global]\nindex-url = https://me:SECRET@pypi.example/simple\ntimeout = 60\n",
         ".condarc": "channels:\n  - https://h.example/t/x\n"},
        visible=[".bashrc", ".zshenv", ".profile", ".config/pip/pip.conf", ".condarc"],
        hidden=[".zshrc"],
    ),
    Home(
        "environments and scripts",
        {".virtualenvs/p/pyvenv.cfg": "x", "tools/bin/x": "#!~/.virtualenvs/p/bin/python\n",
         "opt/app-1/lib/x": "x", "opt/other/secret": "SECRET", "src/pending/sec": "SECRET",
         "tools/bin/deploy": "#!/bin/sh\nAPI_KEY=SECRET\n", "tools/bin/a.pem": "SECRET",
         ".local/pipx/venvs/b/pyvenv.cfg": "x"},
        {"tools/bin/y": "~/opt/app-1/bin/y", ".virtualenvs/p/bin/python": "~/py/bin/python3",
         ".local/bin/black": "../pipx/venvs/b/bin/black", "opt/app": "app-1",
         "tools/bin/z": "../../opt/app/bin/z"},
        ["opt/app-1/bin/y", "opt/app-1/bin/z", "py/bin/python3", "src/pending/.venv/bin/python",
         ".local/pipx/venvs/b/bin/black"],
        {"PATH": "~/tools/bin:~/src/pending/.venv/bin"},
        ["tools/bin/x", ".virtualenvs/p/bin/python", "py/bin/python3", "opt/app-1/bin/y",
         "tools/bin/y", "opt/app-1/lib/x", ".local/bin/black", "tools/bin/z"],
        ["opt/other/secret", "tools/bin/deploy", "tools/bin/a.pem",
         "src/pending/.venv/bin/python"],
    ),
]  # fmt: skip

# Prints the files below a folder that have the secret in them; links are not followed.
_SEARCH = """
result = [
    path for folder, _, names in os.walk({home!r}) for name in names
    if os.path.isfile(path := folder + "/" + name) and {secret!r} in read(path)
]
result = [path for path in result]
"""


def _leaks(wall: Wall, home: Path) -> list[str]:
    found = wall.run(_SEARCH.format(home=str(home), secret=SECRET.encode()))
    return [str(Path(path).relative_to(home)) for path in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.mark.needs("wall")
@pytest.mark.parametrize("case", HOMES, ids=lambda case: case.name)
def test_what_settings_name_is_visible_and_no_secret_is(folder: Path, case: Home) -> None:
    home = folder / "home"
    variables = {"HOME": str(home), **case.make(home)}
    with Wall(folder / "state", home, variables=variables) as wall:
        assert _leaks(wall, home) == []
        visible = [*case.visible, *MIXED_SECRETS]
        assert [each for each in visible if wall.error_of(f"content('{home / each}')")] == []
        hidden = [*case.hidden, *USUAL_SECRETS]
        assert [each for each in hidden if not wall.error_of(f"content('{home / each}')")] == []
        for each in MIXED_SECRETS:
            assert not wall.error_of(f"names('{home / each}', 'r.example')")


@pytest.mark.needs("wall")
@pytest.mark.parametrize("case", HOMES, ids=lambda case: case.name)
def test_control_without_the_refusals_secrets_are_visible(folder: Path, case: Home) -> None:
    home = folder / "home"
    variables = {"HOME": str(home), **case.make(home)}
    with Wall(folder / "state", home, variables=variables, weaknesses={Weakness.ANY_PATH}) as wall:
        assert len(_leaks(wall, home)) >= len(MIXED_SECRETS)
