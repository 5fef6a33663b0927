#!/bin/sh
# Runs the tests with real agent programs, with the options given. npm installs the programs first:
# the tests run without the variables that npm may need to reach its registry.
# Half of the tests run beside the others, because a starting agent uses one core.
set -eu

.venv/bin/python - "$@" <<'INSTALL'
import sys

sys.path.insert(0, "tests")
from support.agent_programs import installed

for packages in ("five", "qwen", "cline", *(["pi"] if "--sizes=soak" in sys.argv else [])):
    installed(packages)
INSTALL

apart="tests/e2e/agents/test_sessions.py tests/e2e/agents/test_workspace.py
tests/e2e/agents/test_confine.py tests/e2e/agents/test_confine_terminal.py"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# shellcheck disable=SC2086  # one word per file
.venv/bin/python -m pytest -q -p no:cacheprovider "$@" $apart >"$said" 2>&1 &
half=$!
status=0
# shellcheck disable=SC2046,SC2086
.venv/bin/python -m pytest -q -p no:cacheprovider "$@" $(printf -- '--ignore=%s ' $apart) \
    tests/e2e/agents || status=$?
echo "To come: $apart"
wait "$half" || status=$?
cat "$said"
exit "$status"
