#!/bin/bash
# Sets the stage for one `systemd --user` of an ordinary user, and stays until standard input ends.
# Run by user_manager.py as root in fresh mount, PID and cgroup namespaces; whatever is mounted and
# started here goes with them. KEPT are folders that stay visible, below /home, /root and /tmp too,
# which are empty otherwise. MORE is put into the environment of the manager. Says `ready` when units can be started.
set -eu
uid=$TEST_UID
runtime=/run/user/$uid

mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
number=0
for folder in $KEPT; do
    number=$((number + 1))
    mkdir "/mnt/$number"
    mount --bind "$folder" "/mnt/$number"
done
for place in /home /root /tmp; do
    mount -t tmpfs -o mode=755 tmpfs "$place"
done
chmod 1777 /tmp
number=0
for folder in $KEPT; do
    number=$((number + 1))
    mkdir -p "$folder"
    mount --bind "/mnt/$number" "$folder"
done

# systemd looks for the first to know whether it was booted; units with namespaces need the others,
# unit-root up to 252, mount-rootfs from 253 on.
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/systemd/unit-root /run/systemd/mount-rootfs /run/lock "$runtime"
mkdir /home/user
chown "$uid:$uid" "$runtime" /home/user
chmod 700 "$runtime" /home/user

# dbus wants an entry for the user.
for file in passwd group; do
    grep -v ":x:$uid:" "/etc/$file" >"/run/$file"
done
echo "user:x:$uid:$uid::/home/user:/bin/bash" >>/run/passwd
echo "user:x:$uid:" >>/run/group
for file in passwd group; do
    mount --bind "/run/$file" "/etc/$file"
done

umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$GROUP"
chown -R "$uid:$uid" "/sys/fs/cgroup/$GROUP"

(
    echo 0 >"/sys/fs/cgroup/$GROUP/cgroup.procs"
    exec setpriv --reuid="$uid" --regid="$uid" --clear-groups env -i HOME=/home/user USER=user \
        LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="$runtime" \
        SYSTEMD_LOG_TARGET=console DBUS_SESSION_BUS_ADDRESS="unix:path=$runtime/bus" $MORE \
        /lib/systemd/systemd --user >"$runtime/manager.log" 2>&1
) &
for _ in $(seq 500); do
    if [ -S "$runtime/systemd/private" ]; then
        echo ready
        exec cat >/dev/null
    fi
    sleep 0.02
done
cat "$runtime/manager.log" >&2
exit 1
