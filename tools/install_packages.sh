#!/bin/sh
# Makes build/model-apis, an environment with the packages of lock.txt. It stands apart from .venv:
# `make test` does not need it. The lock names every package, so pip resolves nothing: see
# tools/setup.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
python=$(sh tools/find_python.sh)
folder=build/model-apis
cmp -s "$here/lock.txt" "$folder/lock.txt" && exit 0
rm -rf "$folder"
mkdir -p build
"$python" -m venv "$folder"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$folder/bin/python" -m pip install --quiet \
    --no-deps --require-hashes --only-binary :all: --requirement "$here/lock.txt"
cp "$here/lock.txt" "$folder/lock.txt"  # last, so that a broken-off environment is made again
