#!/bin/sh
# setup.sh REQUIREMENTS: makes .venv, or adds to it, with every package of the file at its pinned
# version and hash, and then the project itself in place. It downloads nothing that is there already.
#
# uv installs the packages, in a fifth of the time of pip. Where the machine has no uv, pip puts one
# into .venv. Where uv fails, for example because only pip knows the mirror to use, pip does it all.
# Prints nothing but what a person may want to know.
set -eu

cd "$(dirname "$0")/.."
requirements=$1
python=$(sh tools/find_python.sh)
version=$("$python" -c 'import platform; print(platform.python_version())')

venv_with_pip() {
    if [ ! -x .venv/bin/pip ] && ! "$python" -m venv .venv; then
        echo "$python cannot make an environment; Debian, Ubuntu: apt-get install python3-venv" >&2
        return 1
    fi
    pip="env PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet --quiet"
}

# install PROGRAM ARGUMENT...: by this program, the packages, and then the project.
# The lock names every package, so nothing need be resolved; where pip does it, it takes a newer
# release of `name[extra]` than the lock's and then refuses it.
# Two steps, since hash checking refuses a project in place. `--no-build-isolation` lets the second
# one use the pinned build tools of the first.
install() {
    "$@" --no-deps --require-hashes --only-binary :all: --requirement "$requirements" &&
        "$@" --no-deps --no-build-isolation --editable .
}

with_uv() {
    if command -v uv >/dev/null 2>&1; then
        uv=uv
        uv venv --quiet --allow-existing --python "$python" .venv || return 1
    else
        uv=.venv/bin/uv
        venv_with_pip || exit 1
        $pip --require-hashes --only-binary :all: --requirement requirements/uv.txt || return 1
    fi
    install "$uv" pip install --quiet --python .venv/bin/python
}

# An environment that belongs to another Python, or to a checkout that was moved, cannot be mended.
if [ -e .venv ]; then
    here=$(.venv/bin/python -c 'import sys; print(*sys.version_info[:2], sys.base_prefix, sys.prefix)' 2>/dev/null || true)
    ours=$("$python" -c 'import sys; print(*sys.version_info[:2], sys.base_prefix)')
    [ "$here" = "$ours $(pwd -P)/.venv" ] || rm -rf .venv
fi

echo "Setting up .venv with $requirements: Python $version."
with_uv || {
    echo "uv could not do it (see above); trying venv and pip." >&2
    rm -rf .venv
    venv_with_pip
    # shellcheck disable=SC2086  # one word per argument
    install $pip
}
