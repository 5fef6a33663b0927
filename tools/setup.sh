#!/bin/sh
# setup.sh REQUIREMENTS: makes .venv, or adds to it, with every package of the file at its pinned
# version and hash, and then the project itself in place. It downloads nothing that is there already.
# Uses uv where there is one, else venv and pip. Prints nothing but what a person may want to know.
set -eu

cd "$(dirname "$0")/.."
requirements=$1
python=$(sh tools/find_python.sh)
version=$("$python" -c 'import platform; print(platform.python_version())')

with_uv() {
    uv venv --quiet --allow-existing --python "$python" .venv &&
        uv pip install --quiet --python .venv/bin/python --no-deps \
            --require-hashes --only-binary :all: --requirements "$requirements" &&
        uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
}

# The lock names every package, so pip need not resolve anything; where it does, it takes a newer
# release of `name[extra]` than the lock's and then refuses it.
# Two steps, since hash checking refuses a project in place. `--no-build-isolation` lets the second
# one use the pinned build tools of the first.
with_pip() {
    if [ ! -x .venv/bin/pip ] && ! "$python" -m venv .venv; then
        echo "$python cannot make an environment; Debian, Ubuntu: apt-get install python3-venv" >&2
        return 1
    fi
    pip="env PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet --quiet"
    $pip --no-deps --require-hashes --only-binary :all: --requirement "$requirements" &&
        $pip --no-deps --no-build-isolation --editable .
}

# An environment that belongs to another Python, or to a checkout that was moved, cannot be mended.
if [ -e .venv ]; then
    here=$(.venv/bin/python -c 'import sys; print(*sys.version_info[:2], sys.base_prefix, sys.prefix)' 2>/dev/null || true)
    ours=$("$python" -c 'import sys; print(*sys.version_info[:2], sys.base_prefix)')
    [ "$here" = "$ours $(pwd -P)/.venv" ] || rm -rf .venv
fi

what=".venv with $requirements: Python $version"
if command -v uv >/dev/null 2>&1; then
    echo "Setting up $what, by uv."
    with_uv || {
        echo "uv could not do it (see above); trying venv and pip." >&2
        rm -rf .venv
        with_pip
    }
else
    echo "Setting up $what, by venv and pip."
    with_pip
fi
