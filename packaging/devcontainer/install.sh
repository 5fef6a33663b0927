#!/bin/sh
# Install rootsd into a container. A tool for Dev Containers runs this as root while it builds the
# image, with the options of devcontainer-feature.json as variables in capitals.
set -eu
package=${PACKAGE:-rootsd}
user=${_REMOTE_USER:-root}
home=${_REMOTE_USER_HOME:-/root}

find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$python" >/dev/null &&
            "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
                2>/dev/null; then
            return
        fi
    done
    return 1
}

if ! find_python && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        python3 python3-venv
fi
if ! find_python; then
    echo "rootsd needs Python 3.11 or newer with venv." >&2
    echo "try: add the feature ghcr.io/devcontainers/features/python to devcontainer.json" >&2
    exit 1
fi

"$python" -m venv /opt/rootsd
/opt/rootsd/bin/python -m pip install --quiet --disable-pip-version-check "$package"

# Where rootsd looks for the socket of the host. Docker would create missing folders as root, and
# rootsd accepts only a folder of the user.
folder=$home
for name in .local state rootsd run pub; do
    folder=$folder/$name
    if [ ! -d "$folder" ]; then
        mkdir -m 700 "$folder"
        chown "$user" "$folder"
    fi
done
