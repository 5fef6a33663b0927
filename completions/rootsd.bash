# Completion of rootsd for bash; `rootsd completion bash` prints this. It asks rootsd itself, so
# that verbs, flags and projects are those of the version and the daemon that are there.

_rootsd() {
    local -a words
    local kind value current
    COMPREPLY=()
    # Not COMP_WORDS, which bash cuts at each of $COMP_WORDBREAKS; read takes \  for a space.
    # shellcheck disable=SC2162
    read -a words <<<"${COMP_LINE:0:COMP_POINT}x"
    current=${words[-1]%x}
    words[-1]=$current
    while IFS=$'\t' read -r kind value _; do
        case $kind in
        plain) COMPREPLY+=("$value") ;;
        dir) _rootsd_paths -d "$current" ;;
        file) _rootsd_paths -f "$current" ;;
        esac
    done < <(command rootsd completion bash -- "${words[@]:1}" 2>/dev/null)
    # bash puts the answer in place of what stands behind the last of these, not of the whole word.
    if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
}

_rootsd_paths() {
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(compgen "$1" -- "${2#*=}")
}

complete -F _rootsd rootsd
