"""The completion scripts of the shells: each asks `tramai` for lines of kind, value and help, told apart by tabs."""

from __future__ import annotations

BASH = r"""_tramai_completion() {
    local response kind value cur="${COMP_WORDS[COMP_CWORD]}" IFS=$'\n'
    COMPREPLY=()
    response=$(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \
        _TRAMAI_COMPLETE=bash_complete "$1" 2>/dev/null)
    while IFS=$'\t' read -r kind value _; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            part) COMPREPLY+=("$value"); compopt -o nospace 2>/dev/null ;;
            dir) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$cur")) ;;
            file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur")) ;;
            workflow)
                compopt -o filenames 2>/dev/null
                COMPREPLY+=($(compgen -d -- "$cur") $(compgen -f -X '!*.yaml' -- "$cur") \
                    $(compgen -f -X '!*.yml' -- "$cur") $(compgen -f -X '!*.toml' -- "$cur"))
                ;;
        esac
    done <<< "$response"
}
complete -o nosort -F _tramai_completion tramai
"""

ZSH = r"""#compdef tramai
_tramai() {
    local line kind value help
    local -a fields plain described part
    (( $+commands[$words[1]] )) || [[ -x $words[1] ]] || return 1
    for line in "${(@f)$(COMP_LINE="${(j: :)words[1,CURRENT]}" \
        _TRAMAI_COMPLETE=zsh_complete $words[1] 2>/dev/null)}"; do
        fields=("${(@s:	:)line}")
        kind=$fields[1] value=$fields[2] help=$fields[3]
        case $kind in
            plain) if [[ -n $help ]]; then described+=("${value//:/\\:}:$help"); else plain+=("$value"); fi ;;
            part) part+=("$value") ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            workflow) _path_files -g '*.(yaml|yml|toml)(-.)'; _path_files -/ ;;
        esac
    done
    (( $#described )) && _describe -V tramai described
    (( $#plain )) && compadd -V plain -a plain
    (( $#part )) && compadd -S '' -V part -a part
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _tramai "$@"
else
    compdef _tramai tramai
fi
"""

FISH = r"""function _tramai_completion
    set -l words (commandline -opc)
    set -l response (COMP_LINE=(commandline -cp | string collect) _TRAMAI_COMPLETE=fish_complete $words[1] 2>/dev/null)
    for line in $response
        set -l fields (string split \t -- $line)
        switch $fields[1]
            case plain part
                echo $fields[2]\t$fields[3]
            case dir
                __fish_complete_directories (commandline -ct)
            case file
                __fish_complete_path (commandline -ct)
            case workflow
                __fish_complete_suffix .yaml
                __fish_complete_suffix .yml
                __fish_complete_suffix .toml
        end
    end
end
complete --no-files --keep-order --command tramai --arguments "(_tramai_completion)"
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
