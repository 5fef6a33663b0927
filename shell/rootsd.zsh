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
    return $last
}

typeset -ga precmd_functions
precmd_functions=(rootsd_prompt ${precmd_functions:#rootsd_prompt})
