#!/bin/sh
# Makes .venv: every package at its pinned version and hash, then the project itself in place.
# Uses uv where there is one, else venv and pip. Prints nothing but what a person may want to know.
set -eu

cd "$(dirname "$0")/.."
python=$(sh tools/find_python.sh)
version=$("$python" -c 'import platform; print(platform.python_version())')

with_uv() {
    uv venv --quiet --allow-existing --python "$python" .venv &&
        uv pip install --quiet --python .venv/bin/python --no-deps \
            --require-hashes --only-binary :all: --requirements requirements/lock.txt &&
        uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
}

# The lock names every package, so pip need not resolve anything; where it does, it takes a newer
# release of `name[extra]` than the lock's and then refuses it.
# Two steps, since hash checking refuses a project in place. `--no-build-isolation` lets the second
# one use the pinned build tools of the first.
with_pip() {
    if ! "$python" -m venv .venv; then
        echo "$python cannot make an environment; Debian, Ubuntu: apt-get install python3-venv" >&2
        return 1
    fi
    pip="env PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet --quiet"
    $pip --no-deps --require-hashes --only-binary :all: --requirement requirements/lock.txt &&
        $pip --no-deps --no-build-isolation --editable .
}

# An environment that belongs to another Python, or to a checkout that was moved, cannot be mended.
if [ -e .venv ]; then
    here=$(.venv/bin/python -c 'import sys; print(*sys.version_info[:2], sys.base_prefix, sys.prefix)' 2>/dev/null || true)
    ours=$("$python" -c 'import sys; print(*sys.version_info[:2], sys.base_prefix)')
    [ "$here" = "$ours $(pwd -P)/.venv" ] || rm -rf .venv
fi

if command -v uv >/dev/null 2>&1; then
    echo "Setting up .venv: Python $version, by uv."
    with_uv || {
        echo "uv could not do it (see above); trying venv and pip." >&2
        rm -rf .venv
        with_pip
    }
else
    echo "Setting up .venv: Python $version, by venv and pip; the first time takes a minute."
    with_pip
fi
