#!/bin/bash
# Tests dist/rootsd_*.deb, as root: installs it in an overlay over /usr, /etc, and /var, uses it as a
# user with an empty home folder, and removes it. The files of the machine itself do not change.
set -euo pipefail

cd "$(dirname "$0")/.."
if [ "${1-}" != inside ]; then
    exec unshare --mount bash "packaging/${0##*/}" inside
fi

work=$(mktemp -d)
trap 'umount -l "$work"; rmdir "$work"' EXIT
mount -t tmpfs tmpfs "$work"
for folder in usr etc var; do
    mkdir "$work/$folder" "$work/$folder.work"
    mount -t overlay overlay "/$folder" \
        -o "lowerdir=/$folder,upperdir=$work/$folder,workdir=$work/$folder.work"
done
mkdir -m 700 "$work/home"
chmod 711 "$work"
chown 64001:64001 "$work/home"

as_user() {
    setpriv --reuid=64001 --regid=64001 --clear-groups \
        env -i HOME="$work/home" PATH=/usr/bin:/bin "$@" </dev/null
}

mkdir -p /etc/apparmor.d/abi
touch /etc/apparmor.d/abi/4.0 # as where AppArmor restricts user namespaces
dpkg --install dist/rootsd_*.deb
launcher=$(sed -n 's/^profile rootsd \([^ ]*\) .*/\1/p' /etc/apparmor.d/rootsd)
[ "$launcher" = "$(readlink -f /usr/bin/rootsd)" ]
[ -z "$(find "$launcher" ! -user root -o -perm /022)" ]
as_user git init -q "$work/home/src/api"
as_user rootsd up "$work/home/src"
as_user rootsd approve api
as_user sh -c 'echo "$1" | rootsd bridge' - '{"jsonrpc":"2.0","id":1,"method":"roots/list"}' |
    grep -F '"name":"api"'
as_user rootsd service print | grep -Fx "ExecStart=/usr/bin/rootsd daemon"
as_user rootsd down
dpkg --remove rootsd
[ ! -e /usr/bin/rootsd ]
[ ! -e /etc/apparmor.d/rootsd ]
[ ! -e /usr/lib/rootsd ]
