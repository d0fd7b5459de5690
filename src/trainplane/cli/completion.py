"""`trainplane completion`: a script by which a shell completes commands, options and names of TrainJobs."""

from __future__ import annotations

import sys
from typing import Annotated, Final, Literal

import typer

SCRIPTS: Final = {
    "bash": """\
_trainplane() {
    local IFS=$'\\n'
    COMPREPLY=($(_TRAINPLANE_COMPLETE=1 trainplane "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _trainplane trainplane
""",
    "zsh": """\
#compdef trainplane
_trainplane() {
    local -a found
    found=("${(@f)$(_TRAINPLANE_COMPLETE=1 trainplane "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -- $found || _files
}
compdef _trainplane trainplane
""",
    "fish": """\
function __trainplane
    set -l words (commandline -opc) (commandline -ct)
    env _TRAINPLANE_COMPLETE=1 trainplane $words[2..-1] 2>/dev/null
end
complete -c trainplane -a '(__trainplane)'
""",
    "powershell": """\
Register-ArgumentCompleter -Native -CommandName trainplane -ScriptBlock {
    param($word, $tree, $cursor)
    $words = @($tree.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($word -eq '') { $words += '""' }
    $env:_TRAINPLANE_COMPLETE = '1'
    try { & trainplane @words 2>$null } finally { Remove-Item Env:_TRAINPLANE_COMPLETE }
}
""",
}
"""Each asks the program, so a new command needs no new script."""

Shell = Annotated[
    Literal["bash", "zsh", "fish", "powershell"],
    typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.", show_default=False),
]


def command(shell: Shell) -> int:
    """Print a script that completes commands in a shell.

    Commands, options, and the names of TrainJobs where the cluster tells them within two seconds. For bash:
    `trainplane completion bash > ~/.local/share/bash-completion/completions/trainplane`.

    Exit code: 0.
    """
    sys.stdout.write(SCRIPTS[shell])
    return 0
