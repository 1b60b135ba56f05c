# zsh -f complete.zsh SCRIPT LINE: completes the line in an interactive zsh with the completion script, and prints each
# word that it offers as <word>.
zmodload zsh/zpty
zpty z zsh -f -i

setup='
PROMPT=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -D -u
eval '${(q)1}'
zstyle ":completion:*" insert-tab false
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -A hits "$@"; print -rl -- "<"${^hits}">"
}
comppostfuncs=(exit)
bindkey "^I" complete-word'
file=$(mktemp); print -r -- $setup > $file
zpty -w z "source $file; print -r -- READ''Y"
while zpty -r z piece; do [[ $piece == READY* ]] && break; done
rm $file
zpty -w -n z $2$'\t'
while zpty -r z piece; do print -rn -- $piece; done
