"""The system files, toolchains, caches, and variables that confined programs get, as data.

Nothing here depends on decisions. `base_entries` looks which of the paths exist and changes
nothing. Paths with a leading `/` are absolute; the others are below the home folder. Everything
that is not named here, and is no root, does not exist inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import ancestors
from rootsd.core.secret_names import is_secret_name
from rootsd.disk.links import walk_links
from rootsd.wall.view.token_files import hidden_tokens

SYSTEM = b"""
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /nix /snap /gnu/store
    /run/current-system /run/opengl-driver /run/systemd/resolve /run/resolvconf
    /run/NetworkManager/resolv.conf /run/netconfig /run/connman /run/nscd
    /var/lib/flatpak /var/lib/ca-certificates
    /var/lib/texmf /var/lib/ghc /var/lib/aspell /var/lib/dpkg /var/lib/gems
    /home/linuxbrew/.linuxbrew
    /sys/devices/system /sys/fs/cgroup
""".split()

# Without these, programs find no host, no time zone, or no certificate. Each may be a link that
# leads anywhere: WSL has resolv.conf in /mnt/wsl, and others have it in their own folder in /run.
LOOKUP_FILES = b"""
    /etc/resolv.conf /etc/hosts /etc/host.conf /etc/nsswitch.conf /etc/gai.conf /etc/services
    /etc/localtime /etc/timezone /etc/machine-id /etc/os-release /etc/passwd /etc/group
    /etc/ssl/certs /etc/ssl/cert.pem /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs
    /etc/pki/ca-trust/extracted /etc/ca-certificates
""".split()

# Parts of the system that may be links out of it: of Fedora with ostree, to /var/usrlocal.
LINKED_PARTS = [b"/usr/local"]

# Packages install here, and people keep projects here. The user's own folders stay outside.
SHARED_PARENTS = [b"/opt"]

# For an ordinary user, the permissions protect these already. The user root owns them.
SYSTEM_SECRETS = b"""
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d
    /etc/ssl/private /etc/pki/tls/private /etc/pki/nssdb /etc/apt/auth.conf
    /etc/apt/auth.conf.d /etc/ppp/chap-secrets /etc/ppp/pap-secrets /etc/netplan
    /etc/wpa_supplicant /etc/cloudflared /etc/docker/key.json /etc/gitlab-runner
    /etc/security/opasswd /etc/openldap/ldap.secret /etc/samba/smbpasswd
    /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key
    /etc/NetworkManager/system-connections /etc/wireguard /etc/openvpn /etc/krb5.keytab
    /etc/rancher /etc/kubernetes /etc/letsencrypt
""".split()

DEVICES = b"null zero full random urandom tty".split()
DEVICE_LINKS = {
    b"fd": b"/proc/self/fd",
    b"stdin": b"/proc/self/fd/0",
    b"stdout": b"/proc/self/fd/1",
    b"stderr": b"/proc/self/fd/2",
    b"ptmx": b"pts/ptmx",
}

# Programs and their libraries, at their usual places. What is in them outside serves at once; what
# a program inside installs stays in a layer of its name, and nothing outside runs it. What a
# person has elsewhere, and settings, are those of `person_view`.
TOOLCHAINS = b"""
    .local/bin .local/lib .local/pipx .local/share/pipx .local/share/claude .local/share/mise
    .local/share/pnpm .local/share/fnm .local/share/virtualenvs .local/share/pypoetry
    .local/share/hatch .local/share/gem/ruby .nvm .fnm .volta .asdf .nodenv .npm-global .yarn
    .config/yarn/global .bun .pyenv .rye .pixi miniconda3 miniforge3 anaconda3 .conda .rbenv .rvm
    .gem/ruby .cargo .rustup go/bin sdk .sdkman .jenv .dotnet .ghcup .opam .juliaup .nix-profile
    .codex/packages .fzf .oh-my-zsh .elan .krew/bin .krew/store .linuxbrew .virtualenvs
    .vim/autoload .vim/bundle .vim/colors .vim/ftdetect .vim/ftplugin .vim/indent .vim/pack
    .vim/plugged .vim/plugin .vim/syntax .local/share/nvim/lazy .local/share/nvim/mason
    .local/share/nvim/site/autoload .local/share/nvim/site/pack
    .tmux/plugins .config/tmux/plugins .local/share/tmux/plugins .zinit .local/share/zinit .zplug
    .zprezto .oh-my-bash .bash_it .antidote .local/share/blesh .local/share/bash-completion
    .local/share/fish/vendor_completions.d .local/share/man .local/share/swiftly
    .local/share/coursier/bin .local/share/jupyter/kernels .local/share/helm/plugins
    .local/state/nix/profiles .luarocks/bin .luarocks/lib .luarocks/share .cabal/bin
    .nimble/bin .nimble/pkgs2 .choosenim .terminfo .arkade/bin
""".split()

# To read and run, never to change: no tool installs there.
OWN_PROGRAMS = b"bin"

# The content outside serves at once. Changes stay in a layer of the confined programs. In .cache,
# only what tools of developers download: browsers, editors, and compilers keep what a person has
# read or written there, also of other projects.
CACHES = b"""
    .npm .local/share/uv .deno .cargo/registry .cargo/git .cache/uv .cache/pip .cache/pip-tools
    .cache/pipx .cache/pypoetry .cache/pdm .cache/hatch .cache/virtualenv .cache/node
    .cache/node-gyp .cache/yarn .cache/pnpm .cache/deno .cache/electron .cache/Cypress
    .cache/puppeteer .cache/ms-playwright .cache/prisma .cache/typescript .cache/go-build
    .cache/golangci-lint .cache/ccache .cache/sccache .cache/bazelisk .cache/zig .cache/vcpkg
    .cache/coursier .cache/composer .cache/huggingface .cache/torch .cache/pre-commit
    .cache/rubocop_cache .cache/fontconfig .cache/matplotlib .ccache go/pkg .gradle/caches
    .gradle/wrapper .gradle/jdks .m2/repository .m2/wrapper .bundle/cache .nuget/packages
    .ivy2/cache .ivy2/local .sbt/boot .pub-cache/hosted .terraform.d/plugin-cache
    .local/share/ccache
""".split()

# Where tools install and cache without being asked. If such a folder does not exist outside, it
# starts empty and is kept. So is the rest of .cache.
_CACHE = b".cache"
_MADE = b"""
    .cache .npm .local/bin .local/lib .local/share/pipx .local/share/pnpm .local/share/virtualenvs
    .local/share/hatch .local/share/pypoetry .local/share/uv .bun .deno .cargo go/bin go/pkg
    .gradle/caches .gradle/wrapper .m2/repository
""".split()

# pnpm links from its store, and would put one into each root, because each is a mount.
_PNPM_STORE = b".local/share/pnpm/store"
_PNPM_SETTINGS = {
    b".config/pnpm/rc": b"store-dir=%s\n",
    b".config/pnpm/config.yaml": b"storeDir: %s\n",
}

# uv cannot link from its cache into an environment on another mount, and would warn each time.
DEFAULTS = {"UV_LINK_MODE": "copy"}

# Where tools cache or install instead of their usual places.
CACHE_VARIABLES = b"""
    XDG_CACHE_HOME UV_CACHE_DIR UV_TOOL_DIR UV_TOOL_BIN_DIR PIP_CACHE_DIR PIPX_HOME PIPX_BIN_DIR
    POETRY_CACHE_DIR PRE_COMMIT_HOME npm_config_cache npm_config_store_dir YARN_CACHE_FOLDER
    YARN_GLOBAL_FOLDER DENO_DIR BUN_INSTALL_CACHE_DIR GOCACHE GOMODCACHE GOBIN CCACHE_DIR
    SCCACHE_DIR GRADLE_USER_HOME NUGET_PACKAGES COMPOSER_CACHE_DIR HF_HOME
    PLAYWRIGHT_BROWSERS_PATH CYPRESS_CACHE_FOLDER ELECTRON_CACHE
""".split()

# They lead to sockets and agents outside the wall, name this process to its supervisor, or name a
# folder for temporary files that is not inside, where /tmp is private.
SCRUBBED_VARIABLES = b"""
    SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XAUTHORITY DISPLAY
    WAYLAND_DISPLAY WAYLAND_SOCKET DOCKER_HOST CONTAINER_HOST TMUX TMUX_PANE STY KITTY_LISTEN_ON
    KITTY_PUBLIC_KEY NVIM NVIM_LISTEN_ADDRESS VSCODE_IPC_HOOK VSCODE_IPC_HOOK_CLI
    VSCODE_GIT_IPC_HANDLE VSCODE_GIT_ASKPASS_NODE VSCODE_GIT_ASKPASS_MAIN GIT_ASKPASS SSH_ASKPASS
    SUDO_ASKPASS EMACS_SOCKET_NAME WEZTERM_UNIX_SOCKET ALACRITTY_SOCKET GNOME_KEYRING_CONTROL
    PULSE_SERVER PIPEWIRE_REMOTE SESSION_MANAGER WSL_INTEROP NOTIFY_SOCKET LISTEN_FDS LISTEN_PID
    LISTEN_FDNAMES SYSTEMD_EXEC_PID JOURNAL_STREAM LD_PRELOAD TMPDIR TMP TEMP
""".split()

# As root, the files of proc below these are writable even without a capability.
PROC_READ_ONLY = b"sys sysrq-trigger irq bus fs".split()
PROC_HIDDEN = b"""
    acpi kallsyms kcore keys kmsg kpagecgroup kpagecount kpageflags latency_stats modules
    sched_debug scsi slabinfo timer_list vmallocinfo
""".split()

_MOUNT_POINTS = b"/proc /dev/pts /dev/mqueue".split()
_PRIVATE = b"/tmp /var/tmp /dev/shm".split()


def base_entries(home: bytes, uid: int) -> list[ViewEntry]:
    """Return the base of the view for a user whose real home folder is `home`."""
    found = list(_system_entries())
    found += _packages(uid)
    found += _private_entries(home, uid)
    found += _device_entries()
    found += _made_entries(home)
    found += home_entries(home, TOOLCHAINS, ViewEntryKind.TOOLS, "toolchains")
    found += home_entries(home, [OWN_PROGRAMS], ViewEntryKind.READ, "programs of your own")
    found += home_entries(home, CACHES, ViewEntryKind.CACHE, "caches")
    found += secret_entries(home, found)
    return found


def secret_entries(home: bytes, entries: Iterable[ViewEntry]) -> list[ViewEntry]:
    """Return what is hidden in `entries`: logins, and names like `.env` at the top of a tool."""
    found = list(hidden_tokens(home))
    for entry in entries:
        if entry.kind in (ViewEntryKind.CACHE, ViewEntryKind.TOOLS):
            with suppress(PermissionError):
                for name in filter(is_secret_name, os.listdir(entry.path)):
                    path = os.path.realpath(entry.path + b"/" + name)
                    found.append(ViewEntry(path, ViewEntryKind.HIDDEN, "it sounds like secrets"))
    return found


def _made_entries(home: bytes) -> Iterator[ViewEntry]:
    for name in _MADE:
        path = os.path.join(home, name)
        if name == _CACHE or not os.path.lexists(path):
            yield ViewEntry(path, ViewEntryKind.STATE, "what tools install and cache inside")
    for name, text in _PNPM_SETTINGS.items():
        content = text % os.path.join(home, _PNPM_STORE)
        yield ViewEntry(
            os.path.join(home, name), ViewEntryKind.PRIVATE_FILE, "the store of pnpm", b"", content
        )


def home_entries(
    home: bytes, names: Iterable[bytes], kind: ViewEntryKind, reason: str
) -> Iterator[ViewEntry]:
    """Yield the entries for those of `names`, below `home`, that exist."""
    for name in names:
        yield from entry_for(os.path.join(home, name), kind, reason)


def entry_for(path: bytes, kind: ViewEntryKind, reason: str) -> Iterator[ViewEntry]:
    """Yield the entry for `path`, or nothing if it does not exist.

    A link stays a link, but one to a toolchain or cache.
    """
    if kind in (ViewEntryKind.CACHE, ViewEntryKind.TOOLS):
        if os.path.isdir(path):
            yield ViewEntry(path, kind, reason)
    elif os.path.islink(path):
        if kind is not ViewEntryKind.HIDDEN:
            yield ViewEntry(path, ViewEntryKind.LINK, reason, os.readlink(path))
    elif os.path.exists(path):
        yield ViewEntry(path, kind, reason)


def is_system(path: bytes) -> bool:
    """Return whether every program has a path already, as a part of the system."""
    return not {path, *ancestors(path)}.isdisjoint(SYSTEM)


def _system_entries() -> Iterator[ViewEntry]:
    for name in SYSTEM:
        yield from entry_for(name, ViewEntryKind.READ, "system files")
    for name in (*SYSTEM, *LINKED_PARTS):
        yield from _link_targets(name, "system files")
    for name in LOOKUP_FILES:
        yield from _link_targets(name, "what a link in /etc leads to")
    for name in SYSTEM_SECRETS:
        yield from entry_for(name, ViewEntryKind.HIDDEN, "secrets of the system")
    yield ViewEntry(b"/var/run", ViewEntryKind.LINK, "system files", b"/run")


def _link_targets(path: bytes, reason: str) -> Iterator[ViewEntry]:
    """Yield what the links on `path` lead to outside of `SYSTEM`, and the links on the way there.

    A file that is replaced later is not seen: a folder that is known to hold only such a file
    stands in `SYSTEM` as a whole.
    """
    place, is_linked = path, False
    try:
        for place, target in walk_links(path):
            if target is not None:
                is_linked = True
                if not is_system(place):
                    yield ViewEntry(place, ViewEntryKind.LINK, reason, target)
    except OSError:  # a loop of links leads nowhere
        return
    if is_linked and not is_system(place):
        yield from entry_for(place, ViewEntryKind.READ, reason)


def _packages(uid: int) -> Iterator[ViewEntry]:
    for parent in SHARED_PARENTS:
        with suppress(OSError), os.scandir(parent) as children:
            for child in children:
                if uid == 0 or child.stat(follow_symlinks=False).st_uid != uid:
                    yield from entry_for(child.path, ViewEntryKind.READ, "packages")


def _private_entries(home: bytes, uid: int) -> Iterator[ViewEntry]:
    reason = "a folder of their own for confined programs"
    for path in (*_PRIVATE, b"/run/user/%d" % uid, home):
        yield ViewEntry(path, ViewEntryKind.PRIVATE, reason)


def _device_entries() -> Iterator[ViewEntry]:
    for name in _MOUNT_POINTS:
        yield ViewEntry(name, ViewEntryKind.FOLDER, "the program's own processes and terminals")
    for name in DEVICES:
        yield ViewEntry(b"/dev/" + name, ViewEntryKind.DEVICE, "harmless devices")
    for name, target in DEVICE_LINKS.items():
        yield ViewEntry(b"/dev/" + name, ViewEntryKind.LINK, "harmless devices", target)
