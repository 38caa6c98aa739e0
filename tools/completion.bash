# completion.bash — Bash completion of the weir command, which prints it itself; read at the first use.
eval "$(weir completion bash 2>/dev/null)"
