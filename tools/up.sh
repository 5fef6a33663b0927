#!/bin/sh
# Runs the main job on the folder $PARENT, or by default on the folder that holds the checkout.
set -eu

checkout=$(cd "$(dirname "$0")/.." && pwd -P)
rootsd=$checkout/.venv/bin/rootsd

# How to call make again, in the folder in which a person called it.
make="make"
[ "$(cd "${STARTED_IN:-$checkout}" 2>/dev/null && pwd -P)" = "$checkout" ] || make="make -C '$checkout'"

# Two repositories to look at, for a machine that has none in a place that may be watched.
make_sample() {
    sample=${TMPDIR:-/tmp}/rootsd-sample-$(id -u)
    [ -d "$sample" ] || mkdir -m 700 "$sample"
    # The name can be guessed: somebody else's folder or link is never used.
    if [ -L "$sample" ] || [ ! -O "$sample" ]; then
        echo "$sample belongs to somebody else; name a folder: $make up PARENT=~/src" >&2
        exit 1
    fi
    if [ ! -d "$sample/copy/.git" ]; then
        rm -rf "$sample/first" "$sample/copy"
        git -c init.defaultBranch=main init --quiet "$sample/first"
        echo "A sample for rootsd." >"$sample/first/README"
        git -C "$sample/first" add README
        git -C "$sample/first" -c user.name=rootsd -c user.email=rootsd@example.org \
            -c commit.gpgsign=false commit --quiet --message "A sample"
        git clone --quiet "$sample/first" "$sample/copy"
    fi
}

# A tilde is matched below, since not every shell expands it behind an equals sign.
# shellcheck disable=SC2088
case ${PARENT:-} in
"")
    parent=$(dirname "$checkout")
    home=$(cd "${HOME:-/}" 2>/dev/null && pwd -P || echo /)
    case $home/ in
    "$parent/") too_wide=no ;;
    "${parent%/}"/*) too_wide=yes ;;
    *) too_wide=no ;;
    esac
    if [ "$parent" = / ] || [ "$too_wide" = yes ]; then
        make_sample
        echo "The folder that holds this checkout is $parent, which is too wide to watch."
        echo "Using two sample repositories in $sample instead. To name a folder: $make up PARENT=~/src"
        parent=$sample
    fi
    ;;
"~/"*) parent=$HOME/${PARENT#"~/"} ;;
*) parent=$PARENT ;;
esac

"$rootsd" up "$parent"

# What `rootsd` printed names the command as this shell finds it: `rootsd`, or its path.
command -v rootsd >/dev/null || echo "To put the command rootsd on your PATH: $make install"
