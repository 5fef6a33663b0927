# fish completion for rootsd; `rootsd completion fish` prints this script. It runs rootsd for each
# completion, so that the candidates fit the installed version and the running daemon.

function __rootsd_complete
    set -l words (commandline --cut-at-cursor --tokenize --current-process)
    set -l current (commandline --cut-at-cursor --current-token)
    set -e words[1] # not $words[2..], which counts backwards if there is only one word
    set -l before ''
    # fish replaces the whole word with the candidate, so each candidate must repeat `--tag=`.
    string match --quiet -- '--*=*' $current
    and set before (string replace --regex -- '=.*' '=' $current)
    for line in (command rootsd completion fish -- $words $current 2>/dev/null)
        set -l parts (string split \t -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $current
            case file
                __fish_complete_path $current
            case plain
                printf '%s\t%s\n' $before$parts[2] $parts[3]
        end
    end
end

complete --command rootsd --no-files --keep-order --arguments '(__rootsd_complete)'
