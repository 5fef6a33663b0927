"""The files in which tools keep tokens and private keys, inside folders that programs see.

The base of the view shows whole folders of toolchains and caches. Some tools also keep a login
there. Those places are listed here, below the home folder, with the tool that writes them. In a
pattern, `*` stands for one name. `default_view` hides names such as `.npmrc` and
`credentials.toml` at the top of toolchains and caches anyway.

If you add a tool to `default_view`, find out where it keeps its login, and add that here. Only a
token that exists when the wall is built is hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind

TOKEN_FILES: dict[str, bytes] = {
    "Hugging Face": b".cache/huggingface/token .cache/huggingface/stored_tokens",
    "git": b".config/git/credentials",
    "uv": b".config/uv/credentials",
    "mise": b"""
        .config/mise/age.txt .config/mise/github_tokens.toml .config/mise/gitlab_tokens.toml""",
    # Profiles of browsers, with the cookies of each site that somebody logged in to.
    "Playwright MCP": b".cache/ms-playwright/mcp-* .cache/ms-playwright/*-profile",
    "conda": b""".conda/condarc .conda/.condarc .conda/condarc.d .conda/aau_token .conda/.condarc.d
        miniconda3/.condarc miniconda3/condarc miniconda3/condarc.d
        miniforge3/.condarc miniforge3/condarc miniforge3/condarc.d
        anaconda3/.condarc anaconda3/condarc anaconda3/condarc.d""",
    ".NET": b".dotnet/corefx/cryptography",
    "opam": b".opam/plugins/opam-publish .opam/plugins/opam-publish.token",
    "npm": b""".npm-global/etc/npmrc .nvm/versions/node/*/etc/npmrc .nvm/v*/etc/npmrc
        .fnm/node-versions/*/installation/etc/npmrc .nodenv/versions/*/etc/npmrc
        .local/share/fnm/node-versions/*/installation/etc/npmrc
        .local/share/mise/installs/node/*/etc/npmrc .local/share/pnpm/nodejs/*/etc/npmrc
        .volta/tools/image/node/*/etc/npmrc .asdf/installs/nodejs/*/etc/npmrc
        .config/yarn/global/.npmrc .config/yarn/global/.yarnrc
        .bun/install/global/.npmrc .local/share/pnpm/rc .local/share/pnpm/auth.ini""",
    "pip": b""".pyenv/versions/*/pip.conf .pyenv/versions/*/envs/*/pip.conf
        .virtualenvs/*/pip.conf
        .local/share/virtualenvs/*/pip.conf .local/share/pipx/venvs/*/pip.conf
        .local/share/uv/tools/*/pip.conf .local/share/mise/installs/python/*/pip.conf
        .asdf/installs/python/*/pip.conf .rye/py/*/pip.conf .rye/self/pip.conf
        miniconda3/pip.conf miniforge3/pip.conf anaconda3/pip.conf miniconda3/envs/*/pip.conf
        miniforge3/envs/*/pip.conf anaconda3/envs/*/pip.conf""",
    # Its hooks set variables.
    "virtualenvwrapper": b"""
        .virtualenvs/*/.env .local/share/virtualenvs/*/.env
        .virtualenvs/*activate .virtualenvs/*/bin/preactivate .virtualenvs/*/bin/postactivate
        .virtualenvs/*/bin/predeactivate .virtualenvs/*/bin/postdeactivate""",
    "RubyGems": b""".rbenv/versions/*/etc/gemrc .rvm/rubies/*/etc/gemrc
        .local/share/mise/installs/ruby/*/etc/gemrc .asdf/installs/ruby/*/etc/gemrc""",
    "Gradle and Maven": b""".sdkman/candidates/maven/*/conf/settings.xml
        .sdkman/candidates/gradle/*/gradle.properties .sdkman/candidates/gradle/*/init.d
        .local/share/mise/installs/maven/*/conf/settings.xml .m2/repository/settings.xml""",
    "Deno": b".deno/deployctl .cache/deno/location_data",
}


def hidden_tokens(place: bytes, usual: bytes = b"") -> Iterator[ViewEntry]:
    """Yield what hides each token file that exists below a home folder.

    With `usual`, `place` is instead a tool that usually lies there in the home folder. A link is
    followed, because its target may lie in a folder that programs see.
    """
    inside = usual and usual + b"/"
    for tool, patterns in TOKEN_FILES.items():
        for pattern in patterns.split():
            if pattern.startswith(inside):
                for path in matches(place, pattern.removeprefix(inside)):
                    real = os.path.realpath(path)
                    yield ViewEntry(real, ViewEntryKind.HIDDEN, f"secrets of {tool}")


def matches(folder: bytes, pattern: bytes) -> Iterator[bytes]:
    """Yield the paths below a folder that exist and match. A name has at most one `*`.

    Each start looks for all patterns. The module `glob` would take three times as long.
    """
    before, star, rest = pattern.partition(b"*")
    if not star:
        if os.path.lexists(folder + b"/" + pattern):
            yield folder + b"/" + pattern
        return
    above, _, start = (folder + b"/" + before).rpartition(b"/")
    end, slash, below = rest.partition(b"/")
    try:
        names = os.listdir(above)
    except OSError:
        return
    for name in names:
        if len(name) >= len(start + end) and name.startswith(start) and name.endswith(end):
            path = above + b"/" + name
            yield from matches(path, below) if slash else (path,)
