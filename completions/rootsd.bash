# bash completion for rootsd; `rootsd completion bash` prints this script. It runs rootsd for each
# completion, so that the candidates fit the installed version and the running daemon.

_rootsd() {
    local -a words
    local kind value current before=
    COMPREPLY=()
    # bash splits COMP_WORDS at each of $COMP_WORDBREAKS. So split the line with read, without -r:
    # a backslash then escapes a space.
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
    # bash replaces only $2, the text after the last of $COMP_WORDBREAKS, such as a colon or an @.
    [[ $current == *"$2" ]] && before=${current%"$2"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

_rootsd_paths() {
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(compgen "$1" -- "${2#*=}")
}

complete -F _rootsd rootsd
