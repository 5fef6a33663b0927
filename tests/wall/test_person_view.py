"""What a person's settings name is visible behind the wall, and no secret is.

Each synthetic home has about 20 secrets at usual places, and more where its own settings lead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import ancestors
from rootsd.wall.view import person_view as person
from rootsd.wall.view.default_view import CACHES, TOOLCHAINS, home_entries, secret_entries
from rootsd.wall.view.person_view import PersonView, person_view
from rootsd.wall.view.shown_paths import ShownPaths
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
            '[includeIf "gitdir:~/job/"]\n path=~/.gitconfig-work\n'
            "[core]\n hooksPath=~/.githooks\n excludesFile=~/.gi\n[alias]\n x=!~/.git-x\n",
            ".gitconfig-work": "[user]\n email=w@w\n[include]\n path=.gitconfig-more\n",
            ".gitconfig-more": "[commit]\n template=~/.message\n",
            ".message": "x", ".gi": "x", ".git-x": "#!/bin/sh\n",
            ".githooks/pre-commit": "#!/bin/sh\n",
            "dotfiles/secrets/x": "SECRET", "dotfiles/.git/config": "SECRET",
            "dotfiles/zsh/.zshrc": "source ~/dotfiles/zsh/aliases.zsh\n",
            "dotfiles/bin/up": "#!/bin/sh\n", "dotfiles/bin/other": "SECRET",
            "dotfiles/zsh/aliases.zsh": "alias a=b\n", "dotfiles/fish/config.fish": "x\n",
        },
        {".local/bin/up": "../../dotfiles/bin/up",
         ".gitconfig": "dotfiles/git/.gitconfig", ".zshrc": "~/dotfiles/zsh/.zshrc",
         ".config/fish": "../dotfiles/fish"},
        variables={"PATH": "~/dotfiles/bin"},
        visible=[".gitconfig", "dotfiles/git/.gitconfig", ".gitconfig-work", ".gitconfig-more",
                 ".message", ".githooks/pre-commit", ".gi", ".git-x", ".zshrc",
                 "dotfiles/zsh/aliases.zsh", ".config/fish/config.fish", ".local/bin/up"],
        hidden=["dotfiles/bin/other", "dotfiles/secrets/x", "dotfiles/.git/config"],
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
         ".cargo/config.toml": "[registries.x]\ntoken = 'SECRET'\n[build]\njobs = 2\n",
         "data/cargo/config.toml": "[registries.x]\ntoken = 'SECRET'\n[build]\njobs = 2\n",
         "data/cargo/registry/x": "x", "data/go/pkg/mod/x": "x", "data/go/src/s": "SECRET"},
        {},
        ["data/cargo/bin/rg", "data/go/bin/tool"],
        {"PATH": "~/data/cargo/bin:~/data/go/bin", "CARGO_HOME": "~/data/cargo",
         "GOPATH": "~/data/go"},
        ["data/cargo/bin/rg", "data/cargo/env", "data/cargo/registry/x", "data/go/bin/tool",
         ".cargo/config.toml", "data/cargo/config.toml",
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
         ".vimrc": "src/pending/.env", ".screenrc": "src/pending/notes",
         ".inputrc": ".inputrc", ".config/fish": "../.gnupg"},
        ["bin/fine"],
        {"PATH": "~/bin:~/bin2:~/x/bin"},
        ["bin/fine"],
        ["bin/tool", ".screenrc", ".gitconfig", ".bashrc", ".nvm/config", ".vimrc"],
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
                 ".localrc", ".oh-my-zsh/oh-my-zsh.sh", ".oh-my-zsh/custom/a.zsh"],
        hidden=[".secrets.sh", ".work_tokens"],
    ),
    Home(
        "tokens in shell settings",
        {".bashrc": "export OPENAI_API_KEY=SECRET\nalias a=b\n",
         ".zshenv": 'export GH_TOKEN="SECRET"\nexport A=1\n', ".profile": "PATH=x\n",
         ".zshrc": "export A_TOKEN='SECRET\nSECRET'\n", ".config/pip/pip.conf":
         "[global]\nindex-url = https://me:SECRET@index.example/simple\ntimeout = 60\n",
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
         ".local/bin/single": "~/apps/single",
         ".local/bin/black": "../pipx/venvs/b/bin/black", "opt/app": "app-1",
         "tools/bin/z": "../../opt/app/bin/z"},
        ["apps/single", "opt/app-1/bin/y", "opt/app-1/bin/z", "py/bin/python3",
         "src/pending/.venv/bin/python",
         ".local/pipx/venvs/b/bin/black"],
        {"PATH": "~/tools/bin:~/src/pending/.venv/bin"},
        ["tools/bin/x", ".virtualenvs/p/bin/python", "py/bin/python3", "opt/app-1/bin/y",
         "tools/bin/y", "opt/app-1/lib/x", ".local/bin/black", "tools/bin/z",
         ".local/bin/single", "apps/single"],
        ["opt/other/secret", "tools/bin/deploy", "tools/bin/a.pem",
         "src/pending/.venv/bin/python"],
    ),
    Home(
        "environments with variables",
        {"miniconda3/conda-meta/history": "x",
         "miniconda3/etc/conda/activate.d/env.sh": "export MY_KEY='SECRET'\nexport A=1\n",
         "miniconda3/envs/p/conda-meta/state": '{"env_vars": {"MY_TOKEN": "SECRET"}}',
         ".conda/envs/q/etc/conda/activate.d/env.sh": "export MY_KEY='SECRET'\nA=1\n",
         ".virtualenvs/a/bin/activate": "PATH=x\nexport DJANGO_SECRET_KEY=SECRET\n",
         ".virtualenvs/a/.env": "SECRET",
         ".local/share/virtualenvs/b/bin/activate.fish": "set -gx X_TOKEN SECRET\nx\n",
         ".pyenv/versions/3/envs/x/bin/activate": "export X_TOKEN=SECRET\nx\n"},
        visible=["miniconda3/etc/conda/activate.d/env.sh", "miniconda3/envs/p/conda-meta/state",
                 ".virtualenvs/a/bin/activate", ".pyenv/versions/3/envs/x/bin/activate"],
        hidden=[".virtualenvs/a/.env"],
    ),
    Home(
        "clones with a password in the URL",
        {f"{folder}/.git/config": "[core]\n bare=false\n[remote \"origin\"]\n"
         " url = https://me:SECRET@git.example/x\n" for folder in (
            ".cache/pre-commit/repo1", ".oh-my-zsh/custom/plugins/a", ".asdf/plugins/a", ".nvm",
            ".local/share/nvim/lazy/a", ".vim/plugged/a", ".vim/pack/a/start/b", ".fzf",
            ".local/share/mise/plugins/a", ".local/share/nvim/site/pack/a/opt/b")},
        visible=[".nvm/.git/config", ".cache/pre-commit/repo1/.git/config"],
    ),
    Home(
        "secrets at the top of toolchains",
        dict.fromkeys((
            ".asdf/.env", ".pyenv/.netrc", ".deno/.npmrc", ".pixi/credentials.json", "sdk/.netrc",
            ".local/share/fnm/.npmrc", ".cargo/deploy.pem", ".cache/uv/.netrc", "go/bin/.env",
            "bin/id_work", "bin/tokens.txt", "bin/.token", "bin/secrets/a"), "SECRET"),
    ),
    Home(
        "settings of many tools",
        {".zshrc": "export A_TOKEN=$(cat <<EOF\nSECRET\nEOF\n)\n",
         ".psqlrc": "\\set a 1\n\\setenv PGPASSWORD SECRET\n",
         ".yarnrc": 'registry "https://r.example"\n"//r.example/:_authToken" SECRET\n',
         ".Rprofile": "Sys.setenv(GITHUB_PAT='SECRET')\nx\n",
         ".tmux.conf": "set-environment -g A_TOKEN SECRET\nset -g mouse on\n",
         ".cargo/config.toml": '[http]\nproxy="u:SECRET@h:1"\ndebug=false\n',
         ".config/nvim/init.lua": "vim.fn.setenv('OPENAI_API_KEY', 'SECRET')\nx = 1\n",
         ".gitconfig": "[core]\n hooksPath=~/hooks\n",
         "hooks/pre-push": "#!/bin/sh\nMY_TOKEN=SECRET deploy\n"},
        visible=[".psqlrc", ".yarnrc", ".Rprofile", ".tmux.conf", ".cargo/config.toml",
                 ".config/nvim/init.lua", ".gitconfig"],
        hidden=[".zshrc", "hooks/pre-push"],
    ),
    Home(
        "what people add to shells and editors",
        {".tmux/plugins/tpm/tpm": "x", ".config/starship/s.toml": "x", ".zinit/bin/zinit.zsh": "x",
         ".zsh/aliases.zsh": "x", ".zsh/history": "SECRET", ".config/nushell/config.nu": "x",
         ".config/nushell/history.txt": "SECRET",
         ".config/zsh/a.zsh": "export A_TOKEN=SECRET\nx\n",
         ".curlrc": "user = me:SECRET\nsilent\n",
         ".terminfo/x/xterm-kitty": "x",
         ".config/nix/nix.conf": "access-tokens = github.com=SECRET\na = b\n",
         ".nimble/github_api_token": "SECRET", ".luarocks/upload_config.lua": "SECRET",
         "perl5/lib/perl5/x.pm": "x", "perl5/notes": "SECRET",
         ".local/share/jupyter/kernels/a/kernel.json": '{"env": {"A_TOKEN": "SECRET"}}'},
        programs=["perl5/bin/x", ".nimble/bin/n", ".luarocks/bin/l"],
        variables={"PATH": "~/perl5/bin"},
        visible=[".tmux/plugins/tpm/tpm", ".config/starship/s.toml", ".zinit/bin/zinit.zsh",
                 ".zsh/aliases.zsh", ".config/nushell/config.nu", ".config/zsh/a.zsh", ".curlrc",
                 ".terminfo/x/xterm-kitty", ".config/nix/nix.conf", "perl5/lib/perl5/x.pm",
                 ".nimble/bin/n", ".luarocks/bin/l"],
        hidden=[".zsh/history", ".config/nushell/history.txt", "perl5/notes"],
    ),
    Home(
        "moved tools",
        {"pnpm/rc": "SECRET", "pnpm/auth.ini": "SECRET", "mise/installs/x/y": "x",
         "asdf/asdf.sh": "x", "asdf/.env": "SECRET", "go1/pkg/tool/x": "x",
         "conda/conda-meta/h": "x", "gems/bin/x": "#!/bin/sh\n", "gems/credentials": "SECRET",
         "zsh/oh-my-zsh.sh": "x"},
        {},
        ["pnpm/pnpm", "rbenv/libexec/rbenv"],
        {"PNPM_HOME": "~/pnpm", "MISE_DATA_DIR": "~/mise", "ASDF_DIR": "~/asdf", "GOROOT": "~/go1",
         "CONDA_PREFIX": "~/conda", "GEM_HOME": "~/gems", "ZSH": "~/zsh", "RBENV_ROOT": "~/rbenv"},
        ["pnpm/pnpm", "mise/installs/x/y", "asdf/asdf.sh", "go1/pkg/tool/x", "conda/conda-meta/h",
         "gems/bin/x", "zsh/oh-my-zsh.sh", "rbenv/libexec/rbenv"],
        ["pnpm/rc", "pnpm/auth.ini", "asdf/.env", "gems/credentials"],
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
            assert wall.error_of(f"append('{home / each}')") in ("EROFS", "EACCES")
    # Control: without the refusals, secrets are visible.
    with Wall(folder / "weak", home, variables=variables, weaknesses={Weakness.ANY_PATH}) as wall:
        assert len(_leaks(wall, home)) >= len(MIXED_SECRETS)


@pytest.mark.needs("wall")
def test_what_is_installed_inside_stays_inside(folder: Path) -> None:
    home = folder / "home"
    case = next(each for each in HOMES if each.name == "n and npm")
    variables = {"HOME": str(home), **case.make(home)}
    with Wall(folder / "state", home, variables=variables) as wall:
        for place in ("npm/bin", "npm/lib/node_modules"):
            wall.run(f"open('{home}/{place}/new', 'x').close()")
            assert not (home / place / "new").exists()


def _dotfiles_view(home: Path, **known: Iterable[bytes]) -> dict[str, ViewEntryKind]:
    """Return the entries of a home whose settings of git are a link, relative to it."""
    (home / "dotfiles/.git").mkdir(parents=True)
    (home / "dotfiles/.gitconfig").write_text("[include]\npath = ~/more\n")
    (home / "more").write_text("[a]\nb = c\n")
    (home / ".gitconfig").symlink_to("dotfiles/.gitconfig")
    view = person_view(bytes(home), os.geteuid(), {}, (), **known)
    return {os.path.relpath(os.fsdecode(e.path), home): e.kind for e in view.entries}


def test_settings_in_a_root_are_only_visible_as_long_as_the_root(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    found = _dotfiles_view(home, roots=[bytes(home / "dotfiles")])
    assert found == {".gitconfig": ViewEntryKind.LINK, "more": ViewEntryKind.READ}


@pytest.mark.parametrize("is_root", [True, False])
def test_a_root_is_visible_as_it_is_with_secrets_in_its_settings(
    tmp_path: Path, is_root: bool
) -> None:
    home = tmp_path.resolve()
    folder = home / ".asdf"
    for name in ("profile", ".git/config"):
        _write(folder / name, "[a]\npassword = abc\n")
    (home / ".profile").symlink_to(".asdf/profile")
    tools = ViewEntry(bytes(folder), ViewEntryKind.TOOLS, "toolchains")
    roots = [bytes(folder)] * is_root
    view = person_view(bytes(home), os.geteuid(), {}, [] if is_root else [tools], roots)
    copies = {e.path for e in view.entries if e.kind is ViewEntryKind.COPY}
    settings_in_it = {bytes(folder / "profile"), bytes(folder / ".git/config")}
    assert copies == (set() if is_root else settings_in_it)


def test_settings_in_a_denied_folder_are_closed(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    assert _dotfiles_view(home, denied=[bytes(home / "dotfiles")]) == {}


def test_control_settings_in_another_project_are_visible(tmp_path: Path) -> None:
    found = _dotfiles_view(tmp_path.resolve())
    assert found["dotfiles/.gitconfig"] is ViewEntryKind.READ


@pytest.mark.needs("root")
@pytest.mark.parametrize("owner", [0, 1234, 4321])
def test_a_folder_of_another_user_is_closed(tmp_path: Path, owner: int) -> None:
    (tmp_path / "home").mkdir()
    folder = tmp_path / "theirs" / "bin"
    folder.mkdir(parents=True)
    os.chown(folder.parent, owner, owner)
    view = person_view(bytes(tmp_path / "home"), 1234, {b"PATH": bytes(folder)}, ())
    assert [entry.path for entry in view.entries] == [bytes(folder)] * (owner != 4321)
    assert [each.why for each in view.left_out] == ["it belongs to another user"] * (owner == 4321)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "~, for PATH: it holds the home folder (--read FOLDER)"),
        (".config", "~/.config, for PATH: it holds more than tools or settings (--read FOLDER)"),
        (".ssh/bin", "~/.ssh/bin, for PATH: .ssh sounds like secrets (--read ~/.ssh/bin)"),
        (
            "src/pending/bin",
            "~/src/pending/bin, for PATH: it is in the project ~/src/pending"
            " (--read ~/src/pending/bin)",
        ),
        (
            "stuff",
            "~/stuff, for PATH: its name does not say that only programs are in it"
            " (--read ~/stuff)",
        ),
    ],
)
def test_what_stays_closed_has_a_reason_and_an_option(
    tmp_path: Path, path: str, sentence: str
) -> None:
    home = tmp_path.resolve()
    (home / "src/pending/.git").mkdir(parents=True)
    (home / path).mkdir(parents=True, exist_ok=True)
    view = person_view(bytes(home), os.geteuid(), {b"PATH": bytes(home / path)}, ())
    assert [each.sentence(bytes(home)) for each in view.left_out] == [sentence]


# Hostile variables and links. Each part of a path leads somewhere, and links lead to any of these.
PLACES = b"""
    ~ ~/.config ~/.local/share ~/.ssh ~/.aws ~/Documents ~/src ~/src/pending ~/src/pending/bin
    ~/tools ~/tools/bin ~/x ~/x/bin ~/.nvm ~/.bashrc ~/.gitconfig ~/.ssh/id_ed25519 ~/l1 ~/l2/bin
    / /etc /proc/self/cwd /proc/self/root ~/src/pending/notes ~/.cargo ~/.docker/config.json
""".decode().split()
HOSTILE = (*PLACES, "~/..", "~/x/../.ssh", "//", "", ".", "~/l1/..", "~/l1/../.ssh", "~/l2/bin/..")
LINKS = b"""
    l1 l2 bin .local/bin .nvm .bashrc .gitconfig .config/fish x/bin tools/bin/t .npm
""".decode().split()
VARIABLES = b"""
    PATH HOME NVM_DIR CARGO_HOME GOPATH JAVA_HOME VIRTUAL_ENV ZDOTDIR N_PREFIX
""".decode().split()


def _secrets_in(view: PersonView) -> list[bytes]:
    """Return the files with the secret that programs would see."""
    closed = (ViewEntryKind.HIDDEN, ViewEntryKind.COPY)
    hidden = {entry.path for entry in view.entries if entry.kind in closed}
    found = [
        entry.path
        for entry in view.entries
        if entry.kind is ViewEntryKind.COPY and SECRET.encode() in entry.content
    ]
    for entry in view.entries:
        if entry.kind in (ViewEntryKind.READ, ViewEntryKind.CACHE, ViewEntryKind.TOOLS):
            files = [entry.path] if os.path.isfile(entry.path) else []
            for folder, _, names in os.walk(entry.path):
                files += [os.path.join(folder, name) for name in names]
            found += [path for path in files if _is_visible_secret(path, entry.path, hidden)]
    return found


def _is_visible_secret(path: bytes, top: bytes, hidden: set[bytes]) -> bool:
    if not hidden.isdisjoint((path, *ancestors(path))) or not os.path.isfile(path):
        return False
    if os.path.islink(path) and path != top:
        return False  # what it leads to is visible only by itself
    return SECRET.encode() in Path(os.fsdecode(path)).read_bytes()


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with programs and settings, and no system around it that would be slow to walk."""
    home = tmp_path_factory.mktemp("hostile")
    Home(
        "hostile",
        {"tools/bin/run": "#!~/.ssh/id_ed25519\n", ".profile": ". ~/l1\nsource ~/l2/bin\n",
         ".zshenv": "export A=1\n", "x/pyvenv.cfg": "x", "x/letter": "x",
         "src/pending/nvm.sh": "SECRET", "src/pending/bin/java": "token=SECRET"},
        programs=["tools/bin/a", "x/y/bin/b"],
    ).make(home)  # fmt: skip
    return home


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    links=st.dictionaries(st.sampled_from(LINKS), st.sampled_from(HOSTILE), max_size=5),
    variables=st.dictionaries(
        st.sampled_from(VARIABLES), st.lists(st.sampled_from(HOSTILE), max_size=4), max_size=6
    ),
)
def test_no_variable_and_no_link_opens_a_secret(
    hostile_home: Path, links: dict[str, str], variables: dict[str, list[str]]
) -> None:
    with _linked(hostile_home, links):
        view = _view(hostile_home, variables)
        assert _secrets_in(view) == []


@pytest.mark.parametrize(
    ("links", "variables"),
    [
        ({}, {"PATH": ["~/src/pending/bin"]}),
        ({"l1": "~/.ssh/id_ed25519"}, {}),
        ({".bashrc": "~/src/pending/notes"}, {}),
        ({}, {"NVM_DIR": ["~/src/pending"]}),
        ({".nvm": "~/.ssh"}, {}),
    ],
)
def test_control_without_the_refusals_a_variable_or_a_link_opens_a_secret(
    hostile_home: Path,
    links: dict[str, str],
    variables: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ShownPaths, "_refusal", lambda *_: None)
    monkeypatch.setattr(person, "without_secrets", lambda text: text)
    monkeypatch.setattr(person, "has_literal_secret", lambda _: False)
    with _linked(hostile_home, links):
        assert _secrets_in(_view(hostile_home, variables)) != []


def _view(home: Path, variables: Mapping[str, list[str]]) -> PersonView:
    found = {
        os.fsencode(name): os.fsencode(":".join(values).replace("~", str(home)))
        for name, values in variables.items()
    }
    folder = bytes(home)
    base = [
        *home_entries(folder, TOOLCHAINS, ViewEntryKind.TOOLS, "toolchains"),
        *home_entries(folder, CACHES, ViewEntryKind.CACHE, "caches"),
    ]
    base += secret_entries(folder, base)
    return person_view(folder, os.geteuid(), found, base)


@contextmanager
def _linked(home: Path, links: Mapping[str, str]) -> Iterator[None]:
    """Put links into a home, in place of what is there, and then put that back."""
    with ExitStack() as stack:
        for name, target in sorted(links.items()):
            path, kept = home / name, home.parent / f"kept-{name.replace('/', '-')}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or path.exists():
                path.rename(kept)
                stack.callback(kept.rename, path)
            path.symlink_to(target.replace("~", str(home)) or ".")
            stack.callback(path.unlink)
        yield
