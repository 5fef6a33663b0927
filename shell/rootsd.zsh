# rootsd in zsh; `rootsd shell-init zsh` prints this file.
#
# The author of a project chooses its name and path. So each value is quoted where it is used, and
# the lists that rootsd prints have no control characters. `rootsd open` prints the exact path.

# Change to the folder of a root. Without NAME, pick one.
rcd() {
    local ref dir
    if (( $# > 1 )); then
        print -u2 -r -- 'usage: rcd [NAME]'
        return 2
    elif (( $# == 1 )); then
        ref=$1
    else
        ref=$(_rootsd_pick) || return
    fi
    # $() removes newlines at the end, and a path may end with one. So put a dot after it.
    dir=$(command rootsd open -- "$ref" && printf .) || return
    # The options of the user, such as AUTO_PUSHD, apply to cd.
    \builtin cd -- "${dir%$'\n'.}" || return
}

# Print the id of the root that a person picks.
_rootsd_pick() {
    emulate -L zsh
    local listing id name kind folder choice row PS3='number of the root> '
    local -a rows ids
    listing=$(command rootsd ls --published --format id,name,kind,path) || return
    while IFS=$'\t' read -r id name kind folder; do
        if [[ -n $id && $kind != uri ]]; then
            ids+=("$id")
            rows+=("$name  $folder")
        fi
    done <<<"$listing"
    if (( ! $#ids )); then
        print -u2 -r -- 'No root is published. Try: rootsd status'
        return 5
    elif whence -p fzf >/dev/null; then
        choice=$(
            for row in {1..$#ids}; do
                print -r -- "$ids[row]"$'\t'"$rows[row]"
            done | command fzf --no-multi --delimiter='\t' --with-nth=2..
        ) || return
        choice=${choice##*$'\n'} # with --print-query in FZF_DEFAULT_OPTS, the last line
        print -r -- "${choice%%$'\t'*}"
    else
        select choice in "${rows[@]}"; do
            if [[ -n $choice ]]; then
                print -r -- "$ids[REPLY]"
                return
            fi
        done
        return 1
    fi
}

_rootsd_complete_rcd() {
    local kind value help
    local -a described
    while IFS=$'\t' read -r kind value help; do
        case $kind in
        plain) described+=("${value//:/\\:}${help:+:$help}") ;;
        dir) _path_files -/ ;;
        esac
    done < <(command rootsd completion zsh -- open "${(Q)words[CURRENT]}" 2>/dev/null)
    (( $#described )) && _describe -V root described
}

(( $+functions[compdef] )) && compdef _rootsd_complete_rcd rcd

# The last line of this output names the agents that start behind the wall; see [confine] agents.
# The path of rootsd is in each function, because a project may change all variables of a shell.
_rootsd_behind_wall() {
    emulate -L zsh
    local name
    typeset -ga _ROOTSD_AGENTS
    _ROOTSD_AGENTS=("${@:2}")
    for name in "${@:2}"; do
        # A function of the person stays. The prompt tells about it.
        if (( ! $+functions[$name] )); then
            functions[$name]="_rootsd_agent ${(q)1} $name \"\$@\""
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
        print -u2 -r -- "rootsd: $agent starts behind the wall, but $command is gone" \
            "(try: command $agent, which starts it outside)"
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
    emulate -L zsh
    local pid name
    [[ -n ${ROOTSD_CONFINED-} ]] || return
    for pid in 1 $PPID; do
        if [[ -r /proc/$pid/comm ]] && IFS= read -r name </proc/$pid/comm &&
            [[ $name == rootsd-wall ]]; then
            return 0
        fi
    done
    return 1
}

# Tell once about each agent whose name means something else in this shell.
_rootsd_tell_other_agents() {
    emulate -L zsh
    local name
    for name in $_ROOTSD_AGENTS; do
        # An alias that adds arguments still comes to the function.
        if [[ ${aliases[$name]:-$name} != "$name"(| *) ||
            ${functions[$name]:-} != *"_rootsd_agent "*" $name "* ]]; then
            print -u2 -r -- "rootsd: $name is an alias or a function of yours, so it does not" \
                "start behind the wall (try: rootsd confine -- $name)"
        fi
    done
    unset _ROOTSD_AGENTS
}

# Set ROOTSD_PROMPT for the prompt, for example to "work: 3 pending ", and its parts ROOTSD_PENDING
# and ROOTSD_FOCUS. The daemon keeps the file, with only characters that are safe in a prompt. This
# starts no process.
rootsd_prompt() {
    local last=$? file pid pending focus
    local -a files=(
        "/run/user/$UID/rootsd/prompt" "${HOME-}/.local/state/rootsd/run/prompt"
        "${HOME-}/Library/Application Support/rootsd/run/prompt"
    )
    [[ -z ${ROOTSD_DIR-} ]] || files=("$ROOTSD_DIR/run/prompt")
    typeset -g ROOTSD_PROMPT='' ROOTSD_PENDING='' ROOTSD_FOCUS=''
    for file in "${files[@]}"; do
        # A daemon that crashed leaves its file behind.
        if [[ -r $file ]] && IFS=' ' read -r pid pending focus <"$file" &&
            kill -0 "$pid" 2>/dev/null; then
            ROOTSD_PENDING=$pending ROOTSD_FOCUS=$focus
            [[ $pending == 0 ]] || ROOTSD_PROMPT="$pending pending "
            [[ -z $focus ]] || ROOTSD_PROMPT="$focus${ROOTSD_PROMPT:+:} $ROOTSD_PROMPT"
            break
        fi
    done
    (( ! $+_ROOTSD_AGENTS )) || _rootsd_tell_other_agents
    return $last
}

typeset -ga precmd_functions
precmd_functions=(rootsd_prompt ${precmd_functions:#rootsd_prompt})
