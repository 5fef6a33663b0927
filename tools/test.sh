#!/bin/sh
# Runs all tests, with the options given, in several processes: most tests wait for disks, mounts,
# and processes of their own, so two processes per core keep the cores busy.
set -eu

workers=$(($(getconf _NPROCESSORS_ONLN) * 2))
exec .venv/bin/python -m pytest -q --numprocesses="$workers" --dist=worksteal "$@"
