#!/bin/sh
# Builds dist/rootsd_*.deb from this tree, on the Debian release that the package is for:
# sh packaging/build_deb.sh
# Needs debhelper, dpkg-dev, python3-pip, python3-venv, and the network for the pinned wheels.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dpkg-buildpackage expects debian/ at the top, and writes its results beside the tree.
mkdir "$work/rootsd"
cp -R LICENSE README.md bin completions daemon docs launchd packaging pyproject.toml requirements \
    shell systemd tools "$work/rootsd"
cp -R packaging/debian "$work/rootsd/debian"
(cd "$work/rootsd" && dpkg-buildpackage --build=binary --no-sign >"$work/log" 2>&1) || {
    cat "$work/log" >&2
    exit 1
}
mkdir -p dist
cp "$work"/rootsd_*.deb dist
ls dist/rootsd_*.deb
