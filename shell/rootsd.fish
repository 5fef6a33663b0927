# rootsd in fish; `rootsd shell-init fish` prints this file.
#
# The author of a project chooses its name and path. So the lists that rootsd prints have no control
# characters, and `rootsd open` prints the exact path.

function rcd --description 'Change to the folder of a root'
    set -l ref $argv
    if test (count $argv) -gt 1
        echo 'usage: rcd [NAME]' >&2
        return 2
    else if test (count $argv) -eq 0
        set ref (__rootsd_pick)
        or return
    end
    # A path may hold a newline, so it ends with NUL.
    command rootsd open -0 -- $ref | read --null --local dir
    set -l statuses $pipestatus
    test $statuses[1] -eq 0
    or return $statuses[1]
    cd $dir
end

# Print the id of the root that a person picks.
function __rootsd_pick
    set -l ids
    set -l rows
    for line in (command rootsd ls --published --format id,name,kind,path)
        set -l cells (string split \t -- $line)
        if test "$cells[3]" != uri
            set -a ids $cells[1]
            set -a rows "$cells[2]  $cells[4]"
        end
    end
    if test (count $ids) -eq 0
        echo 'No root is published. Try: rootsd status' >&2
        return 5
    else if command --query fzf
        set -l choice (
            for number in (seq (count $ids))
                printf '%s\t%s\n' $ids[$number] $rows[$number]
            end | command fzf --no-multi --delimiter='\t' --with-nth=2..
        )
        or return
        # With --print-query in FZF_DEFAULT_OPTS, the choice is the last line.
        string split --fields 1 \t -- $choice[-1]
    else
        for number in (seq (count $ids))
            echo "$number) $rows[$number]" >&2
        end
        while read --local --prompt-str 'number of the root> ' choice
            if string match --quiet --regex '^[1-9][0-9]{0,8}$' -- $choice
                and test $choice -le (count $ids)
                echo $ids[$choice]
                return
            end
        end
        return 1
    end
end

function __rootsd_complete_rcd
    set -l current (commandline --cut-at-cursor --current-token)
    for line in (command rootsd completion fish -- open $current 2>/dev/null)
        set -l parts (string split \t -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $current
            case plain
                printf '%s\t%s\n' $parts[2] $parts[3]
        end
    end
end

complete --command rcd --no-files --keep-order --arguments '(__rootsd_complete_rcd)'

# The last line of this output names the agents that start behind the wall; see [confine] agents.
# The path of rootsd is in each function, because a project may change all variables of a shell.
function __rootsd_behind_wall
    set -l command (string escape --style=script -- $argv[1])
    set --global __rootsd_agents $argv[2..]
    for name in $argv[2..]
        # A function of the person stays. The prompt tells about it.
        functions --query -- $name
        or eval "function $name --wraps $name; __rootsd_agent $command $name \$argv; end"
    end
end

# Start an agent behind the wall, or outside with --outside as the first argument. If the wall
# cannot work, the agent does not start.
function __rootsd_agent
    set -l rootsd $argv[1]
    set -l agent $argv[2]
    set -e argv[1..2]
    if __rootsd_is_inside
        command $agent $argv
    else if not test -x "$rootsd"
        echo "rootsd: $agent starts behind the wall, but $rootsd is gone" \
            "(try: command $agent, which starts it outside)" >&2
        return 127
    else if test "$argv[1]" = --outside
        $rootsd review --before $agent
        or return
        command $agent $argv[2..]
    else
        $rootsd confine -- $agent $argv
    end
end

# Return whether this shell is behind the wall. A project can set the variable, but not the names
# of these processes.
function __rootsd_is_inside
    test -n "$ROOTSD_CONFINED"
    and test -r /proc/$fish_pid/stat
    or return
    # The parent is the second word after the name in parentheses.
    read --local --line line </proc/$fish_pid/stat
    set -l words (string split ' ' -- (string replace --regex '^.*\) ' '' -- $line))
    for pid in 1 $words[2]
        if test -r /proc/$pid/comm
            and read --local name </proc/$pid/comm
            and test "$name" = rootsd-wall
            return 0
        end
    end
    return 1
end

# Tell once about each agent whose name means something else in this shell.
function __rootsd_tell_other_agents
    for name in $__rootsd_agents
        if not functions -- $name | string match --quiet "*__rootsd_agent * $name *"
            echo "rootsd: $name is a function of yours, so it does not start behind the wall" \
                "(try: rootsd confine -- $name)" >&2
        end
    end
    set --erase __rootsd_agents
end

set --global __rootsd_uid (id -u)

# Set ROOTSD_PROMPT for the prompt, for example to "work: 3 pending ", and its parts ROOTSD_PENDING
# and ROOTSD_FOCUS. The daemon keeps the file, with only characters that are safe in a prompt. This
# starts no process.
function rootsd_prompt --on-event fish_prompt
    set --query __rootsd_agents
    and __rootsd_tell_other_agents
    set -l files /run/user/$__rootsd_uid/rootsd/prompt $HOME/.local/state/rootsd/run/prompt \
        "$HOME/Library/Application Support/rootsd/run/prompt"
    test -n "$ROOTSD_DIR"
    and set files $ROOTSD_DIR/run/prompt
    set --global ROOTSD_PROMPT ''
    set --global ROOTSD_PENDING ''
    set --global ROOTSD_FOCUS ''
    for file in $files
        test -r $file
        and read --local --delimiter ' ' pid pending focus <$file
        or continue
        # A daemon that crashed leaves its file behind. macOS has no /proc.
        test -d /proc/$pid -o ! -d /proc/self
        or continue
        set ROOTSD_PENDING $pending
        set ROOTSD_FOCUS $focus
        test $pending = 0
        or set ROOTSD_PROMPT "$pending pending "
        if test -n "$focus"
            test -n "$ROOTSD_PROMPT"
            and set focus $focus:
            set ROOTSD_PROMPT "$focus $ROOTSD_PROMPT"
        end
        break
    end
end
