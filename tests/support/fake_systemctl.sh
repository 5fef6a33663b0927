#!/bin/sh
# A `systemctl --user` for a machine without systemd. It starts and stops the daemon of
# rootsd.service, and says that its sockets do not listen.
set -eu

shift # --user
verb=$1
shift
unit=$HOME/.config/systemd/user/rootsd.service
pid_file=$HOME/.fake-systemctl

is_running() {
    [ -e "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null
}

case "$verb $*" in
*UnitPath*) echo "$HOME/.config/systemd/user.control $HOME/.config/systemd/user" ;;
"show --property=Version") echo Version=252 ;;
show*)
    if is_running; then
        echo "ActiveState=active"
        echo "MainPID=$(cat "$pid_file")"
    else
        echo "ActiveState=inactive"
    fi
    echo "UnitFileState=enabled"
    ;;
start*)
    is_running && exit
    command=$(grep '^ExecStart=' "$unit")
    # The words of the unit have no quotes here.
    # shellcheck disable=SC2086
    ${command#ExecStart=} >/dev/null 2>&1 </dev/null &
    echo $! >"$pid_file"
    ;;
stop*)
    is_running && kill "$(cat "$pid_file")"
    rm -f "$pid_file"
    ;;
is-active*) exit 3 ;;
esac
