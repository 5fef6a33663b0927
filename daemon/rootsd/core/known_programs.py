"""The programs that count as a person's, by what they are for.

This module is data. The guard asks about each program that is not in these lists, so a missing
name costs a person one word to type, or one `rootsd guard allow PROGRAM`. A name too many lets an
unknown program decide without a question. When in doubt, leave a name out.

A name counts only for a program in one of `SYSTEM_PLACES`, where an agent that runs as you cannot
put a copy of itself under that name without an installer. Names are those of the executable, not
those that a process gives itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum


class ProgramUse(StrEnum):
    """Why a program counts as a person's."""

    LOGIN = "starts logins"
    REMOTE = "remote login"
    SCHEDULER = "runs jobs"
    DESKTOP = "desktop"
    TERMINAL = "terminal"
    MULTIPLEXER = "multiplexer"
    SHELL = "shell"
    EDITOR = "editor"
    LAUNCHER = "runs other programs"
    ROOTSD = "rootsd"
    SYSTEM = "runs as root"
    ALLOWED = "allowed by you"


KNOWN_PROGRAMS: Mapping[ProgramUse, frozenset[str]] = {
    ProgramUse.LOGIN: frozenset(
        {"init", "launchd", "login", "agetty", "getty", "systemd", "systemd-executor", "runit"}
        | {"runsv", "runsvdir", "s6-svscan", "s6-supervise", "supervisord", "dinit", "shepherd"}
        | {"tini", "dumb-init", "docker-init", "catatonit", "openrc", "start-stop-daemon"}
        | {"gdm-session-worker", "gdm-wayland-session", "gdm-x-session", "sddm-helper", "lightdm"}
        | {"greetd", "ly", "lemurs", "startx", "xinit", "Xorg", "xdm", "dbus-daemon"}
        | {"dbus-broker", "dbus-broker-launch", "dbus-run-session", "dbus-launch"}
    ),
    ProgramUse.REMOTE: frozenset(
        {"sshd", "sshd-session", "sshd-auth", "dropbear", "mosh-server", "etserver"}
        | {"etterminal", "tailscaled", "xrdp-sesman", "xrdp-sesexec", "Xtigervnc", "Xvnc"}
        | {"cockpit-session", "ttyd", "in.telnetd", "ssm-session-worker", "x2goagent"}
    ),
    ProgramUse.SCHEDULER: frozenset(
        {"anacron", "atd", "cron", "crond", "fcron", "cronie", "busybox-crond"}
    ),
    ProgramUse.DESKTOP: frozenset(
        {"gnome-session", "gnome-session-binary", "gnome-session-service", "gnome-shell"}
        | {"plasmashell", "startplasma-x11", "startplasma-wayland", "kwin_x11", "kwin_wayland"}
        | {"ksmserver", "krunner", "kdeinit", "klauncher", "plasma_session", "kglobalacceld"}
        | {"xfce4-session", "xfce4-panel", "xfdesktop", "xfwm4", "lxsession", "lxqt-session"}
        | {"lxqt-panel", "pcmanfm", "pcmanfm-qt", "cinnamon", "cinnamon-session", "mate-session"}
        | {"mate-panel", "marco", "budgie-panel", "budgie-wm", "cosmic-session", "cosmic-comp"}
        | {"sway", "Hyprland", "hyprland", "i3", "river", "niri", "labwc", "wayfire", "bspwm"}
        | {"dwm", "awesome", "openbox", "fluxbox", "xmonad", "qtile", "sxhkd", "swhkd", "dwl"}
        | {"rofi", "dmenu", "wofi", "fuzzel", "bemenu", "tofi", "polybar", "waybar", "i3bar"}
        | {"nautilus", "dolphin", "thunar", "nemo", "caja", "pcmanfm", "Finder", "Dock"}
        | {"gtk-launch", "gio", "gio-launch-desktop", "xdg-open", "kioexec", "app2unit", "uwsm"}
        | {"gnome-keyring-daemon", "ssh-agent", "gpg-agent", "xwayland-satellite", "Xwayland"}
    ),
    ProgramUse.TERMINAL: frozenset(
        {"alacritty", "kitty", "kitten", "ghostty", "foot", "footclient", "wezterm"}
        | {"wezterm-gui", "wezterm-mux-server", "gnome-terminal", "gnome-terminal-server"}
        | {"kgx", "gnome-console", "ptyxis", "ptyxis-agent", "konsole", "yakuake", "xterm"}
        | {"uxterm", "urxvt", "urxvtd", "rxvt", "rxvt-unicode", "st", "stterm", "tilix", "tilda"}
        | {"xfce4-terminal", "mate-terminal", "lxterminal", "qterminal", "deepin-terminal"}
        | {"cosmic-term", "contour", "rio", "zutty", "mlterm", "eterm", "Eterm", "aterm", "sakura"}
        | {"roxterm", "terminology", "cool-retro-term", "black-box", "blackbox", "termite"}
        | {"io.elementary.terminal", "x-terminal-emulator", "hyper", "tabby", "extraterm"}
        | {"iTerm2", "iTermServer", "Terminal", "warp", "warp-terminal"}
    ),
    ProgramUse.MULTIPLEXER: frozenset(
        {"tmux", "screen", "zellij", "byobu", "dtach", "abduco", "dvtm", "tmate"}
    ),
    ProgramUse.SHELL: frozenset(
        {"sh", "ash", "bash", "rbash", "dash", "fish", "ksh", "mksh", "oksh", "zsh", "rzsh"}
        | {"csh", "tcsh", "bsd-csh", "nu", "elvish", "pwsh", "yash", "osh", "ysh", "xonsh", "ion"}
        | {"bash-static", "zsh-static", "mksh-static", "sash", "hush", "posh", "murex"}
    ),
    ProgramUse.EDITOR: frozenset(
        {"vi", "vim", "view", "gvim", "nvim", "neovide", "neovim-qt", "ex", "rvim", "nvim-qt"}
        | {"emacs", "emacs-gtk", "emacs-lucid", "emacs-nox", "emacs-pgtk", "emacs-x", "Emacs"}
        | {"emacs-x11", "xemacs", "nano", "pico", "micro", "hx", "helix", "kak", "joe", "jed"}
        | {"mcedit", "ne", "ed", "code", "code-insiders", "code-oss", "codium", "vscodium"}
        | {"code-tunnel", "code-server", "Electron", "Code Helper", "Code", "cursor", "Cursor"}
        | {"Cursor Helper", "windsurf", "Windsurf", "antigravity", "Antigravity", "kiro", "Kiro"}
        | {"trae", "Trae", "positron", "zed", "zed-editor", "zeditor", "lapce", "pulsar"}
        | {"sublime_text", "plugin_host", "gedit", "gnome-text-editor", "kate", "kwrite", "geany"}
        | {"mousepad", "xed", "pluma", "gnome-builder", "kdevelop", "qtcreator", "eclipse"}
        | {"idea", "pycharm", "clion", "goland", "webstorm", "phpstorm", "rubymine", "rider"}
        | {"rustrover", "datagrip", "dataspell", "studio", "mc", "vifm", "nnn", "lf"}
        | {"yazi", "broot", "lazygit", "gitui", "tig", "less", "more", "most", "man"}
    ),
    ProgramUse.LAUNCHER: frozenset(
        # They replace themselves, or run another program, which is judged by itself.
        {"env", "nice", "ionice", "nohup", "setsid", "timeout", "time", "stdbuf", "chrt"}
        | {"taskset", "unshare", "nsenter", "setpriv", "runuser", "su", "sudo", "doas", "run0"}
        | {"pkexec", "sg", "newgrp", "chroot", "chpst", "flock", "xargs", "find", "fd", "fdfind"}
        | {"watch", "entr", "watchexec", "hyperfine", "strace", "ltrace", "fzf", "run-parts"}
        | {"make", "gmake", "bmake", "ninja", "just", "task", "git", "cargo", "caffeinate"}
        | {"direnv", "mise", "asdf", "rtx", "devbox", "nix", "nix-shell", "guix", "lorri"}
        | {"uv", "uvx", "pixi", "snap", "snap-confine", "snap-exec", "flatpak", "bwrap"}
        | {"xvfb-run", "systemd-inhibit", "systemd-run", "script", "asciinema", "ttyrec"}
    ),
}

KNOWN_SCRIPTS: Mapping[ProgramUse, frozenset[str]] = {
    ProgramUse.TERMINAL: frozenset({"terminator", "guake"}),
    ProgramUse.SHELL: frozenset({"xonsh"}),
    ProgramUse.REMOTE: frozenset({"cockpit-bridge"}),
    ProgramUse.SCHEDULER: frozenset({"supervisord"}),
    ProgramUse.DESKTOP: frozenset({"ulauncher", "uwsm"}),
    ProgramUse.EDITOR: frozenset({"ranger"}),
    ProgramUse.LAUNCHER: frozenset(
        {"npm", "npx", "npm-cli", "npx-cli", "pnpm", "yarn", "pipx", "poetry", "pdm", "hatch"}
        | {"tox", "nox", "invoke", "inv", "fab", "parallel", "ansible", "ansible-playbook"}
        | {"rake", "bundle", "pre-commit", "asciinema", "unbuffer", "conda", "scons"}
    ),
}
"""The scripts, in a system place, that an interpreter runs."""

INTERPRETERS = frozenset(
    {"python", "pypy", "node", "nodejs", "bun", "deno", "ruby", "perl", "lua", "luajit", "php"}
    | {"java", "tclsh", "wish", "expect", "Rscript", "R", "osascript", "gjs", "qjs", "guile"}
    | {"racket", "julia", "irb", "tsx", "ts-node", "Python"}
)
"""Programs that are known by the script that they run. Shells are not among them: a person's
scripts are shell scripts.
"""

MULTICALL = frozenset({"busybox", "toybox", "coreutils", "sbase-box", "ubase-box"})
"""Programs that do what the name says by which they were called."""

SYSTEM_PLACES = (
    "/bin/", "/sbin/", "/usr/", "/opt/", "/lib/", "/libexec/", "/nix/store/", "/gnu/store/",
    "/snap/", "/app/", "/var/lib/flatpak/", "/run/wrappers/", "/run/current-system/",
    "/home/linuxbrew/.linuxbrew/", "/Applications/", "/System/", "/Library/",
)  # fmt: skip

EDITOR_FOLDERS = frozenset(
    {"JetBrains", ".vscode-server", ".vscode-server-insiders", ".vscode-server-oss"}
    | {".cursor-server", ".windsurf-server", ".trae-server", ".kiro-server", ".zed_server"}
    | {".antigravity-server", ".vscodium-server"}
)
"""Folders, anywhere, where an editor installs itself, or what it runs on a machine over ssh."""

EXTENSION_FOLDERS = frozenset({"extensions", "plugins", "User", "globalStorage", "node_modules"})
"""Folders in those with what others wrote, such as an agent."""

EDITOR_SERVER = re.compile(
    r"(?:code|cursor|windsurf|trae|kiro|antigravity|codium)"
    r"(?:-(?:server|tunnel|insiders|oss|[0-9a-f]{7,}))*"
    r"|zed-remote-server[\w.+-]*|remote-dev-server|remote-dev-worker\w*|jetbrains-toolbox"
    r"|(?:idea|pycharm|clion|goland|webstorm|phpstorm|rubymine|rider|rustrover|datagrip"
    r"|dataspell|studio)(?:64)?"
)
"""The names of the programs of an editor in such a folder."""

JETBRAINS_MAIN = "com.intellij.idea.Main"
"""The class by which the programs of JetBrains start on their own Java."""
