#!/bin/sh
# Puts `rootsd` on the PATH: as a tool of uv or pipx with a copy of its own, else as a link to .venv.
set -eu

cd "$(dirname "$0")/.."
bin=$HOME/.local/bin
python=$PWD/.venv/bin/python  # pipx takes no path that begins elsewhere

constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT
sh tools/constraints.sh >"$constraints"

wheel() {
    rm -rf build/wheel
    .venv/bin/python -m hatchling build --target wheel --directory build/wheel >/dev/null 2>&1
    echo build/wheel/rootsd-*.whl
}

if command -v uv >/dev/null 2>&1; then
    uv tool install --quiet --force --reinstall --python "$python" --constraints "$constraints" \
        "$(wheel)[ui]"
    bin=$(uv tool dir --bin)
    how="a tool of uv; remove it with: uv tool uninstall rootsd"
elif command -v pipx >/dev/null 2>&1; then
    made=$(wheel)
    # Otherwise an earlier commit of the same version would stay. pip and uv, one of which pipx
    # uses, have no common option for that.
    pipx uninstall rootsd >/dev/null 2>&1 || true
    pipx install --force --python "$python" --pip-args="--constraint=$constraints" "${made}[ui]"
    bin=$(pipx environment --value PIPX_BIN_DIR)
    how="an application of pipx; remove it with: pipx uninstall rootsd"
else
    mkdir -p "$bin"
    if [ -e "$bin/rootsd" ] && [ ! -L "$bin/rootsd" ]; then
        echo "$bin/rootsd is there and is no link; move it away first." >&2
        exit 1
    fi
    ln -sf "$PWD/.venv/bin/rootsd" "$bin/rootsd"
    how="a link into this checkout, which has to stay; remove it with: rm $bin/rootsd"
fi

said=$("$bin/rootsd" version 2>&1) || {
    echo "$said" >&2
    exit 1
}
echo "$bin/rootsd is $how"
case :$PATH: in
*:"$bin":*) ;;
*) echo "$bin is not on your PATH yet; in your shell's startup file: export PATH=\"$bin:\$PATH\"" ;;
esac
