"""The variables of tools, and the settings files, that `person_view` knows, as data.

Names are below the home folder. In the tables of variables, `-` stands for no usual place.
"""

from __future__ import annotations

from rootsd.core.mount_plan import ViewEntryKind

# A variable, where its tool usually lies, and what is in that folder. A variable that names
# another folder shows it only if that is there, too.
TOOL_VARIABLES = """
    NVM_DIR .nvm nvm.sh | FNM_DIR .fnm node-versions | VOLTA_HOME .volta tools
    NODENV_ROOT .nodenv versions | PYENV_ROOT .pyenv libexec/pyenv
    RBENV_ROOT .rbenv libexec/rbenv | JENV_ROOT .jenv libexec/jenv
    GOENV_ROOT .goenv libexec/goenv | RUSTUP_HOME .rustup toolchains
    GOROOT - pkg/tool | BUN_INSTALL .bun bin/bun | DENO_INSTALL .deno bin/deno
    PNPM_HOME .local/share/pnpm pnpm | SDKMAN_DIR .sdkman candidates | JAVA_HOME - bin/java
    ASDF_DIR .asdf asdf.sh | ASDF_DATA_DIR .asdf installs | RYE_HOME .rye shims
    MISE_DATA_DIR .local/share/mise installs | PIPX_HOME .local/share/pipx venvs
    CONDA_PREFIX miniconda3 conda-meta | MAMBA_ROOT_PREFIX miniforge3 conda-meta
    PIXI_HOME .pixi bin/pixi | DOTNET_ROOT .dotnet dotnet | OPAMROOT .opam opam-init
    ELAN_HOME .elan toolchains | JULIAUP_DEPOT_PATH .juliaup juliaup.json
    ZSH .oh-my-zsh oh-my-zsh.sh | FLUTTER_ROOT - bin/flutter | ANDROID_HOME - platform-tools
    HOMEBREW_PREFIX .linuxbrew bin/brew | VIRTUAL_ENV - pyvenv.cfg
"""
# Of these, only parts are shown, because logins lie beside them.
PART_VARIABLES = {
    ViewEntryKind.TOOLS: """
        CARGO_HOME .cargo bin env | GOPATH go bin | N_PREFIX - bin lib include share n
        NPM_CONFIG_PREFIX .npm-global bin lib | PYTHONUSERBASE - bin lib | COMPOSER_HOME - vendor
        GEM_HOME - bin gems specifications extensions""",
    ViewEntryKind.CACHE: "CARGO_HOME .cargo registry git | GOPATH go pkg",
}
# These parts are settings, which are looked through for secrets.
SETTINGS_VARIABLES = "CARGO_HOME .cargo config.toml | ZDOTDIR - .zshenv .zprofile .zshrc .zlogin"
# The folders of programs that a person has without a PATH, and the names that others must have.
OWN_PROGRAM_FOLDERS = b".local/bin bin".split()
PROGRAM_FOLDERS = frozenset(b"bin sbin shims scripts libexec condabin tools cmd".split())
# An installation has one of these beside the folder of its programs.
INSTALLED_BESIDE = b"pyvenv.cfg lib lib64 libexec share node_modules jbr jre include".split()
PROGRAM_PARTS = frozenset(b"bin sbin lib libexec node_modules".split())

# In these files of an installation, tools keep logins.
LOGINS = b"""
    etc/npmrc etc/gemrc etc/pip.conf pip.conf conf/settings.xml gradle.properties init.d .condarc
    condarc rc auth.ini
""".split()

# Settings: files, or folders of files. Those of git and shells name others.
GIT_SETTINGS = b".gitconfig .config/git/config".split()
SHELL_SETTINGS = b"""
    .bashrc .bash_profile .bash_login .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin
    .kshrc .config/zsh/.zshrc .config/zsh/.zshenv .config/fish/config.fish
""".split()
SETTINGS = b"""
    .config/git .config/uv .config/mise .config/fish .config/pip .config/go/env .config/pypoetry
    .config/jj .config/tmux/tmux.conf .config/bat .config/direnv .config/ruff .config/starship.toml
    .config/nvim .oh-my-zsh/custom .vim/vimrc
    .inputrc .vimrc .tmux.conf .editorconfig .gitignore .gitignore_global .gitattributes
    .gitmessage .pip/pip.conf .cargo/config.toml .cargo/config .gradle/gradle.properties
    .gradle/init.gradle .condarc .mambarc .gemrc .irbrc .npmrc .yarnrc .yarnrc.yml .m2/settings.xml
    .bunfig.toml .bash_logout .zlogout .p10k.zsh .dircolors .wgetrc .screenrc .nanorc
    .hgrc .jjconfig.toml .tool-versions .asdfrc .nvmrc .node-version .python-version .ruby-version
    .default-npm-packages .clang-format .pylintrc .flake8 .ripgreprc .Rprofile .psqlrc .sqliterc
    .gdbinit .lldbinit .pdbrc .selected_editor .mavenrc .sbtopts .mise.toml
    .config/starship .config/lazygit .config/helix .config/zellij .config/htop .config/ripgrep
    .config/fd .config/emacs/init.el .emacs .emacs.d/init.el .zsh .zsh_plugins.txt .zpreztorc
    .antigen.zsh .bash_completion .config/powershell/profile.ps1 .config/nushell .config/irb
    .config/pdm .config/hatch .config/black .config/flake8 .config/yamllint .config/shellcheckrc
    .config/rustfmt .config/matplotlib .config/just .config/tig .config/act .config/nix
    .config/nixpkgs .config/delta .config/zsh .config/lesskey .config/stylua
    .shellcheckrc .stylua.toml .rustfmt.toml .ocamlformat .prettierrc .eslintrc.json .perltidyrc
    .perlcriticrc .ackrc .agignore .ignore .rgignore .dir_colors .curlrc .lesskey .digrc .actrc
    .tigrc .pryrc .make.conf .justfile .cabal/config .stack/config.yaml .jupyter
    .ipython/profile_default/ipython_config.py .matplotlib/matplotlibrc .ansible.cfg
""".split()
# In these files of toolchains, people write variables, and git keeps the URLs of what it cloned.
WRITTEN_IN_TOOLS = b"""
    .virtualenvs/*/bin/activate* .local/share/virtualenvs/*/bin/activate*
    .pyenv/versions/*/bin/activate* .pyenv/versions/*/envs/*/bin/activate*
    *conda3/etc/conda/activate.d/* *conda3/envs/*/etc/conda/activate.d/*
    *conda3/conda-meta/state *conda3/envs/*/conda-meta/state
    miniforge3/etc/conda/activate.d/* miniforge3/envs/*/etc/conda/activate.d/*
    miniforge3/conda-meta/state miniforge3/envs/*/conda-meta/state
    .conda/envs/*/etc/conda/activate.d/* .conda/envs/*/conda-meta/state
    .*/.git/config .*/plugins/*/.git/config .vim/*/*/.git/config .vim/pack/*/*/*/.git/config
    .oh-my-zsh/custom/*/*/.git/config .local/share/nvim/lazy/*/.git/config
    .local/share/nvim/site/pack/*/*/*/.git/config .local/share/mise/plugins/*/.git/config
    .cache/pre-commit/*/.git/config .local/share/jupyter/kernels/*/kernel.json
""".split()
# They hold more than tools and settings, so none is shown as a whole.
WIDE = frozenset(
    b""".config .cargo .local .local/share .local/state .cache .var .claude .codex .cursor .gemini
    .qwen .copilot .vscode .vscode-server Documents Desktop Downloads Pictures Music Videos Public
    Templates Library snap src work projects code dev git repos""".split()
)
# The settings of git that name a file or folder.
GIT_FILES = frozenset(
    (
        "core.hookspath", "core.excludesfile", "core.attributesfile", "commit.template",
        "init.templatedir", "gpg.ssh.allowedsignersfile", "blame.ignorerevsfile", "mailmap.file",
    )
)  # fmt: skip
