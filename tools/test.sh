#!/bin/sh
# Run all tests in several processes, with the given pytest options. VENV is the environment to use.
#
# Most tests wait for disks, mounts, and processes of their own, so two workers per core keep the
# cores busy. Three per core are no faster: 218 s instead of 220 s, as root on two cores.
#
# On a busy machine a test can fail because another test took the time that it needed. Therefore a
# few failed tests run once more, one at a time. A test that fails alone is broken.
set -eu

# Without bytecode, each worker compiles all tests, and each program that a test starts compiles
# rootsd: a third more time.
unset PYTHONDONTWRITEBYTECODE
# See tests/support/unsynced.py.
export PYTEST_WITHOUT_SYNCS=1

venv=${VENV:-.venv}
cache=$venv/pytest-cache
most_to_repeat=5
run_tests() {
    "$venv/bin/python" -m pytest -q -o cache_dir="$cache" "$@"
}

workers=$(($(getconf _NPROCESSORS_ONLN) * 2))
status=0
run_tests --cache-clear --numprocesses="$workers" --dist=worksteal "$@" || status=$?
# pytest exits with 1 if tests failed, and with other statuses for errors of its own.
[ "$status" = 1 ] || exit "$status"
failed=$(grep -c '": true' "$cache/v/cache/lastfailed" || true)
[ "$failed" -le "$most_to_repeat" ] || exit "$status"
echo "Failed beside other tests: $failed. Each of them runs once more, alone:"
run_tests --last-failed "$@"
