# Types a line and Tab into an interactive zsh, and prints what was offered: $1 the completions, $2 the line.
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT=''; RPROMPT=''; LISTMAX=0; setopt nobeep; unsetopt automenu"
zpty -w z "autoload -U compinit; compinit -u -D; source ${(q)1}"
zpty -w z 'compadd () { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi; local -a hits; builtin compadd -A hits "$@"; print -l -- "HIT:"${^hits}; builtin compadd "$@" }'
# What is typed before the line editor has the terminal would go to the terminal's own. In two parts: typing is echoed, too.
zpty -w z "zle-line-init() { print -n '<EDI''TOR>' }; zle -N zle-line-init"
zpty -r z out '*<EDITOR>*'
# Then the line is taken away again, so that nothing runs.
zpty -n -w z "$2"$'\t\x15'
zpty -w z "print DO''NE"
zpty -r z out '*DONE*'
print -r -- "$out" | tr -d '\r' | grep -o 'HIT:[^ ]*' | sed 's/^HIT://' | sort -u
