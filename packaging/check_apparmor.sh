#!/bin/sh
# Checks packaging/apparmor/rootsd with the parser of AppArmor 4, without loading it into a kernel:
# sh packaging/check_apparmor.sh
# Debian 12 has AppArmor 3, which cannot read it. So this takes the parser from Debian 13, with the
# libraries that it needs, into a temporary folder. Needs apt and the network.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >"$work/sources.list"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
apt update
(cd "$work" && apt download apparmor libc6 libgcc-s1 libstdc++6 libapparmor1)
for package in "$work"/*.deb; do
    dpkg-deb --extract "$package" "$work/root"
done

libraries=$(dirname "$(find "$work/root" -name libapparmor.so.1)")
loader=$(find "$work/root/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)
parse() {
    "$loader" --library-path "$libraries" "$work/root/usr/sbin/apparmor_parser" \
        --base "$work/root/etc/apparmor.d" --policy-features "$work/root/etc/apparmor.d/abi/4.0" \
        --config-file /dev/null --skip-kernel-load --skip-cache "$@"
}
parse packaging/apparmor/rootsd
[ "$(parse --names packaging/apparmor/rootsd)" = rootsd ]
# The control.
sed 's/userns,/userns/' packaging/apparmor/rootsd >"$work/wrong"
if parse "$work/wrong" 2>"$work/said"; then
    echo "the parser does not notice a wrong rule" >&2
    exit 1
fi
grep -q USERNS "$work/said"
