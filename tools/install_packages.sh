#!/bin/sh
# Makes build/NAME, an environment with the packages of the lock.txt in SOURCES. It stands apart from
# .venv: `make test` does not need it. The lock names every package, so pip resolves nothing: see
# tools/setup.sh. Of proxy-tools, which Serena imports, there is no wheel. Usage: install_packages.sh SOURCES NAME
set -eu

cd "$(dirname "$0")/.."
lock=$1/lock.txt
folder=build/$2
python=$(sh tools/find_python.sh)
cmp -s "$lock" "$folder/lock.txt" && exit 0
rm -rf "$folder"
mkdir -p build
"$python" -m venv "$folder"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$folder/bin/python" -m pip install --quiet \
    --no-deps --require-hashes --only-binary :all: --no-binary proxy-tools \
    --requirement "$lock"
cp "$lock" "$folder/lock.txt"  # last, so that a broken-off environment is made again
