# Completion of rootsd for fish; `rootsd completion fish` prints this. It asks rootsd itself, so
# that verbs, flags and projects are those of the version and the daemon that are there.

function __rootsd_complete
    set -l words (commandline --cut-at-cursor --tokenize --current-process)
    set -l current (commandline --cut-at-cursor --current-token)
    set -e words[1] # not $words[2..], which runs backwards where there is one word
    set -l before ''
    # fish puts the answer in place of the whole word, so that `--tag=` has to stay.
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
