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
    return "$status"
}

[[ ${PROMPT_COMMAND-} == rootsd_prompt* ]] ||
    PROMPT_COMMAND=rootsd_prompt${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
