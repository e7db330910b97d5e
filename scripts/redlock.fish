# Completion of redlock(1) for fish: to be installed as
# PREFIX/share/fish/vendor_completions.d/redlock.fish. What may stand where is what
# `redlock help --complete` says.

function __redlock_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -l answer ($program help --complete $words[2..] "$current" </dev/null 2>/dev/null)
    set -l head (string split ' ' -- $answer[1])
    switch "$head[1]"
        case command
            # fish counts from 1, and redlock is the first word
            set -l command $words[(math $head[2] + 2)..] $current
            complete -C "$(string escape -- $command | string join ' ')"
        case files pids
            set -l typed (string sub -s (math (string length -- "$head[2]") + 1) -- "$current")
            test $head[1] = pids; and set -l names (__fish_complete_pids); or set -l names (__fish_complete_path "$typed")
            for name in $names
                echo $head[2]$name
            end
        case words stems
            printf '%s\n' $answer[2..]
    end
end

complete -c redlock -f -a '(__redlock_complete)'
