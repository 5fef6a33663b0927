#!/bin/sh
# Prints the command of a Python that is new enough, or says what is missing.
set -eu

wanted='import sys, venv; sys.exit(sys.version_info < (3, 11))'
# The base executable: ours may be an activated .venv that is about to be made anew.
# A version manager's shim can exist for a Python that is not installed, so each one is run.
for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$name" >/dev/null 2>&1 && "$name" -c "$wanted" >/dev/null 2>&1; then
        "$name" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))'
        exit 0
    fi
done

if [ -n "${PYTHON:-}" ]; then
    seen="$PYTHON is not that"
elif command -v python3 >/dev/null 2>&1; then
    seen="python3 here is $(python3 -c 'import sys; print(sys.version.split()[0])' 2>&1)"
else
    seen="there is no python3 on PATH"
fi
cat >&2 <<MESSAGE
rootsd needs Python 3.11 or newer with the module venv; $seen.
  Debian, Ubuntu:  apt-get install python3 python3-venv
  macOS:           brew install python
or name one:       make PYTHON=/path/to/python3.11 …
MESSAGE
exit 1
