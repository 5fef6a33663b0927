#!/bin/sh
# Runs all tests, with the options given, in two processes at once: the tests with disks, mounts and
# processes of their own wait most of the time, so that two cores do in half the time what one
# process after the other would.
set -eu

apart="tests/bridge tests/store tests/trust tests/watching"
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# shellcheck disable=SC2086  # one word per folder
.venv/bin/python -m pytest -q -p no:cacheprovider "$@" $apart >"$said" 2>&1 &
half=$!
status=0
# shellcheck disable=SC2046,SC2086
.venv/bin/python -m pytest -q "$@" $(printf -- '--ignore=%s ' $apart) || status=$?
echo "To come: $apart"
wait "$half" || status=$?
cat "$said"
exit "$status"
