#!/bin/sh
# Runs the tests with real agent programs, with the options given. npm installs the programs first:
# the tests run without the variables that npm may need to reach its registry.
# Two files run at once, because a starting agent uses one core. On a busy machine, one test takes
# minutes.
set -eu

case " $* " in *" --sizes=soak "*)
    sh tools/install_packages.sh tests/e2e/agents/servers mcp-servers ;;
esac
.venv/bin/python - "$@" <<'INSTALL'
import sys

sys.path.insert(0, "tests")
from support.agent_programs import installed

for packages in ("five", "qwen", "cline", "acp", *(["pi"] if "--sizes=soak" in sys.argv else [])):
    installed(packages)
INSTALL

run_tests() {
    .venv/bin/python -m pytest -q -o cache_dir=.venv/agents-cache -o faulthandler_timeout=600 \
        "$@" tests/e2e/agents
}

status=0
run_tests --cache-clear --numprocesses=2 --dist=loadfile "$@" || status=$?
# As in tools/test.sh: an agent that was slow beside another one gets a second chance, alone.
[ "$status" = 1 ] || exit "$status"
echo "Those that failed beside others run once more, alone:"
run_tests --last-failed "$@"
