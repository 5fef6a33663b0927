#!/bin/sh
# Prints the pinned versions as constraints for an installation of our wheel. Without their hashes:
# pip would then ask for a hash of the wheel too.
set -eu

sed -n 's/^\([a-z].*[^ ]\) *\\$/\1/p' "$(dirname "$0")/../requirements/lock.txt"
