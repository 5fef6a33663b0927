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
from rootsd.core.paths import contains
from rootsd.disk.links import walk_links
from rootsd.wall.view.token_files import find_token_files

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

# Programs and their libraries, at their usual places: to read and run, never to change. What a
# person has elsewhere, and settings, are those of `person_view`.
TOOLCHAINS = b"""
    .local/bin .local/lib .local/share/pipx .local/share/claude .local/share/mise
    .local/share/pnpm .local/share/fnm .local/share/virtualenvs .nvm .fnm .volta .asdf .nodenv
    .npm-global .bun .deno/bin .pyenv .rye .pixi miniconda3 miniforge3 anaconda3 .conda .rbenv
    .rvm .cargo/bin .rustup go/bin sdk .sdkman .jenv .dotnet .ghcup .opam .juliaup .nix-profile
    .codex/packages bin .fzf .oh-my-zsh .elan .krew/bin .krew/store .linuxbrew
""".split()

# The content outside serves at once. Changes stay in a layer of the confined programs.
CACHES = b"""
    .npm .local/share/uv .cache/uv .cache/pip .cache/node .cache/yarn .cache/pnpm
    .cache/go-build go/pkg .cargo/registry .cargo/git .cache/ms-playwright .cache/huggingface
    .cache/pre-commit .gradle/caches .m2/repository .deno
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
    found += home_entries(home, TOOLCHAINS, ViewEntryKind.READ, "toolchains")
    found += home_entries(home, CACHES, ViewEntryKind.CACHE, "caches")
    found += [
        ViewEntry(path, ViewEntryKind.HIDDEN, f"secrets of {tool}")
        for path, tool in find_token_files(home)
    ]
    return found


def home_entries(
    home: bytes, names: Iterable[bytes], kind: ViewEntryKind, reason: str
) -> Iterator[ViewEntry]:
    """Yield the entries for those of `names`, below `home`, that exist."""
    for name in names:
        yield from entry_for(os.path.join(home, name), kind, reason)


def entry_for(path: bytes, kind: ViewEntryKind, reason: str) -> Iterator[ViewEntry]:
    """Yield the entry for `path`, or nothing if it does not exist. A link stays a link."""
    if os.path.islink(path):
        if kind is not ViewEntryKind.HIDDEN:
            yield ViewEntry(path, ViewEntryKind.LINK, reason, os.readlink(path))
    elif kind is ViewEntryKind.CACHE:
        if os.path.isdir(path):
            yield ViewEntry(path, kind, reason)
    elif os.path.exists(path):
        yield ViewEntry(path, kind, reason)


def _system_entries() -> Iterator[ViewEntry]:
    for name in SYSTEM:
        yield from entry_for(name, ViewEntryKind.READ, "system files")
    for name in LOOKUP_FILES:
        yield from _link_targets(name)
    for name in SYSTEM_SECRETS:
        yield from entry_for(name, ViewEntryKind.HIDDEN, "secrets of the system")
    yield ViewEntry(b"/var/run", ViewEntryKind.LINK, "system files", b"/run")


def _link_targets(path: bytes) -> Iterator[ViewEntry]:
    """Yield what the links on `path` lead to outside of `SYSTEM`, and the links on the way there.

    A file that is replaced later is not seen: a folder that is known to hold only such a file
    stands in `SYSTEM` as a whole.
    """
    reason = "what a link in /etc leads to"
    place, is_linked = path, False
    try:
        for place, target in walk_links(path):
            if target is not None:
                is_linked = True
                if not _is_system(place):
                    yield ViewEntry(place, ViewEntryKind.LINK, reason, target)
    except OSError:  # a loop of links leads nowhere
        return
    if is_linked and not _is_system(place):
        yield from entry_for(place, ViewEntryKind.READ, reason)


def _is_system(path: bytes) -> bool:
    return any(contains(above, path) for above in SYSTEM)


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
