# zsh -f complete.zsh SCRIPT LINE…: completes each line in the same interactive zsh with the completion script, prints each
# word that it offers as <word>, and @END@ after each line.
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
complete-and-clear() { zle complete-word; BUFFER=; print -r -- @END@ }
zle -N complete-and-clear
bindkey "^I" complete-and-clear'
file=$(mktemp); print -r -- $setup > $file
zpty -w z "source $file; print -r -- READ''Y"
while zpty -r z piece; do [[ $piece == READY* ]] && break; done
rm $file
for line in ${@:2}; do
  zpty -w -n z $line$'\t'
  while zpty -r z piece; do
    print -rn -- $piece
    [[ $piece == *@END@* ]] && break
  done
done
