# rootsd in bash; `rootsd shell-init bash` prints this file.
#
# The author of a project chooses its name and path. So each value is quoted where it is used, and
# the lists that rootsd prints have no control characters. `rootsd open` prints the exact path.

# Change to the folder of a root. Without NAME, pick one.
rcd() {
    local ref dir
    if (($# > 1)); then
        printf 'usage: rcd [NAME]\n' >&2
        return 2
    elif (($# == 1)); then
        ref=$1
    else
        ref=$(_rootsd_pick) || return
    fi
    # $() removes newlines at the end, and a path may end with one. So put a dot after it.
    dir=$(command rootsd open -- "$ref" && printf .) || return
    \builtin cd -- "${dir%$'\n'.}" || return
}

# Print the id of the root that a person picks.
_rootsd_pick() {
    local listing id name kind path choice REPLY PS3='number of the root> '
    local -a rows=() ids=()
    listing=$(command rootsd ls --published --format id,name,kind,path) || return
    while IFS=$'\t' read -r id name kind path; do
        if [[ -n $id && $kind != uri ]]; then
            ids+=("$id")
            rows+=("$name  $path")
        fi
    done <<<"$listing"
    if ((${#ids[@]} == 0)); then
        printf 'No root is published. Try: rootsd status\n' >&2
        return 5
    elif type -P fzf >/dev/null; then
        choice=$(_rootsd_rows | command fzf --no-multi --delimiter='\t' --with-nth=2..) || return
        choice=${choice##*$'\n'} # with --print-query in FZF_DEFAULT_OPTS, the last line
        printf '%s\n' "${choice%%$'\t'*}"
    else
        select choice in "${rows[@]}"; do
            if [[ -n $choice ]]; then
                printf '%s\n' "${ids[10#$REPLY - 1]}"
                return
            fi
        done
        return 1
    fi
}

_rootsd_rows() {
    local number
    for number in "${!ids[@]}"; do
        printf '%s\t%s\n' "${ids[number]}" "${rows[number]}"
    done
}

_rootsd_complete_rcd() {
    local current kind value before=
    local -a words=()
    COMPREPLY=()
    # bash splits COMP_WORDS at each of $COMP_WORDBREAKS. So split the line with read, without -r:
    # a backslash then escapes a space.
    # shellcheck disable=SC2162
    read -a words <<<"${COMP_LINE:0:COMP_POINT}x"
    current=${words[${#words[@]} - 1]%x}
    # bash replaces only $2, the text after the last of $COMP_WORDBREAKS, such as an @.
    [[ $current == *"$2" ]] && before=${current%"$2"}
    while IFS=$'\t' read -r kind value _; do
        case $kind in
        plain) COMPREPLY+=("${value#"$before"}") ;;
        dir)
            compopt -o filenames 2>/dev/null
            while IFS= read -r value; do
                COMPREPLY+=("${value#"$before"}")
            done < <(compgen -d -- "$current")
            ;;
        esac
    done < <(command rootsd completion bash -- open "$current" 2>/dev/null)
}

complete -F _rootsd_complete_rcd rcd

# The last line of this output names the agents that start behind the wall; see [confine] agents.
# The path of rootsd is in each function, because a project may change all variables of a shell.
_rootsd_behind_wall() {
    local name command
    printf -v command %q "$1"
    _ROOTSD_AGENTS=("${@:2}")
    for name in "${@:2}"; do
        # A function of the person stays. The prompt tells about it.
        if ! declare -F -- "$name" >/dev/null; then
            \builtin eval "function $name { _rootsd_agent $command $name \"\$@\"; }" || continue
        fi
    done
}

# Start an agent behind the wall, or outside with --outside as the first argument. If the wall
# cannot work, the agent does not start.
_rootsd_agent() {
    local command=$1 agent=$2
    shift 2
    if _rootsd_is_inside; then
        \builtin command "$agent" "$@"
    elif [[ ! -x $command ]]; then
        printf 'rootsd: %s starts behind the wall, but %s is gone (try: command %s, which starts it outside)\n' \
            "$agent" "$command" "$agent" >&2
        return 127
    elif [[ ${1-} == --outside ]]; then
        "$command" review --before "$agent" || return
        \builtin command "$agent" "${@:2}"
    else
        "$command" confine -- "$agent" "$@"
    fi
}

# Return whether this shell is behind the wall. A project can set the variable, but not the names
# of these processes.
_rootsd_is_inside() {
    local pid name
    [[ -n ${ROOTSD_CONFINED-} ]] || return
    for pid in 1 "$PPID"; do
        if IFS= read -r name <"/proc/$pid/comm" && [[ $name == rootsd-wall ]]; then
            return 0
        fi
    done 2>/dev/null
    return 1
}

# Tell once about each agent whose name means something else in this shell.
_rootsd_tell_other_agents() {
    local name
    for name in "${_ROOTSD_AGENTS[@]}"; do
        # An alias that adds arguments still comes to the function.
        if [[ ${BASH_ALIASES[$name]-$name} != "$name"?( *) ||
            $(declare -f -- "$name") != *"_rootsd_agent "*" $name "* ]]; then
            printf 'rootsd: %s is an alias or a function of yours, so it does not start behind the wall (try: rootsd confine -- %s)\n' \
                "$name" "$name" >&2
        fi
    done
    unset _ROOTSD_AGENTS
}

# Set ROOTSD_PROMPT for the prompt, for example to "work: 3 pending ", and its parts ROOTSD_PENDING
# and ROOTSD_FOCUS. The daemon keeps the file, with only characters that are safe in a prompt. This
# starts no process.
rootsd_prompt() {
    local status=$? file pid pending focus
    local -a files=(
        "/run/user/$UID/rootsd/prompt" "${HOME-}/.local/state/rootsd/run/prompt"
        "${HOME-}/Library/Application Support/rootsd/run/prompt"
    )
    [[ -z ${ROOTSD_DIR-} ]] || files=("$ROOTSD_DIR/run/prompt")
    ROOTSD_PROMPT='' ROOTSD_PENDING='' ROOTSD_FOCUS=''
    for file in "${files[@]}"; do
        # A daemon that crashed leaves its file behind.
        if [[ -r $file ]] && IFS=' ' read -r pid pending focus <"$file" &&
            kill -0 "$pid" 2>/dev/null; then
            # shellcheck disable=SC2034
            ROOTSD_PENDING=$pending ROOTSD_FOCUS=$focus
            [[ $pending == 0 ]] || ROOTSD_PROMPT="$pending pending "
            [[ -z $focus ]] || ROOTSD_PROMPT="$focus${ROOTSD_PROMPT:+:} $ROOTSD_PROMPT"
            break
        fi
    done
    [[ -z ${_ROOTSD_AGENTS-} ]] || _rootsd_tell_other_agents
    return "$status"
}

[[ ${PROMPT_COMMAND-} == rootsd_prompt* ]] ||
    PROMPT_COMMAND=rootsd_prompt${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
