/**
 * The program of the guard, for bash, which needs a tenth of the memory of Node. It reads lines from its standard input: `until` and
 * a time, `kill`, and `end`. Times are hundredths of a second since the machine was started, from /proc/uptime: they also
 * count while the machine sleeps. The arguments are the process id of the server, and the mark of its processes.
 */
export const GUARD_SCRIPT = `
server=$1 mark=$2 now=0 until=0 frozen=
declare -A started=()
order=() found=() unready=
trap '' INT TERM HUP

read_now() {
  local up
  read -r up _ </proc/uptime
  now=$((10#\${up/./}))
}

# Sets 'stat' to the state and the start time of a process, and to the address of its stack, 0 if that is not shown.
read_stat() {
  local line= fields
  # The name in it may contain line breaks.
  { read -r -d '' line </proc/$1/stat; } 2>/dev/null
  [[ $line ]] || return 1
  fields=(\${line##*) })
  stat=(\${fields[0]} \${fields[19]} \${fields[25]})
}

# True for a copy of the server that has not begun its program: it has the stack of the server. The server waits for it and can
# renew nothing meanwhile: if the copy were stopped, both would stay so.
is_unready() {
  local stat
  [[ $1 != 0 ]] && read_stat "$server" && [[ $1 == \${stat[2]} ]]
}

# Adds all processes below this one: parents first.
add_tree() {
  local file child children
  for file in /proc/$1/task/*/children; do
    children=()
    { read -r -a children <"$file"; } 2>/dev/null
    for child in "\${children[@]}"; do
      [[ $child == $$ || $child == $BASHPID ]] && continue
      found+=("$child")
      add_tree "$child"
    done
  done
}

# Finds what left the tree of the server and has the mark, with all below that.
find_marked() {
  local pid
  while read -r pid; do
    pid=\${pid%/environ}
    found+=("$pid")
    add_tree "$pid"
  done < <(cd /proc && exec grep -lFs -- "$mark" [0-9]*/environ)
}

# Stops those that it has not met yet, and sets 'new' if there was one.
stop_found() {
  local pid
  for pid in "\${found[@]}"; do
    read_stat "$pid" || continue
    [[ \${started[$pid]} == \${stat[1]} ]] && continue
    is_unready "\${stat[2]}" && unready=1 && continue
    started[$pid]=\${stat[1]}
    # What was stopped by others stays stopped later.
    [[ \${stat[0]} == [TZt] ]] && continue
    kill -STOP "$pid" 2>/dev/null && new=1 && order+=("$pid")
  done
  found=()
}

# Repeats it until no process is new: one that is being stopped may have started another.
freeze() {
  local round new
  frozen=1 unready=
  for round in 1 2 3 4 5 6 7 8; do
    new=
    [[ $1 == tree ]] && add_tree "$server" && stop_found
    find_marked
    stop_found
    [[ $new ]] || return
  done
}

# Children first: a parent that sees its child stopped may take it for a job that was suspended.
thaw() {
  local i pid
  for ((i = \${#order[@]} - 1; i >= 0; i--)); do
    pid=\${order[i]}
    read_stat "$pid" && [[ \${started[$pid]} == \${stat[1]} ]] && kill -CONT "$pid" 2>/dev/null
  done
  frozen= unready= order=() started=()
}

kill_all() {
  local round pid empty=0
  for round in 1 2 3 4 5 6 7 8; do
    freeze "$1"
    # One that has just begun its program has no environment for a moment.
    [[ \${#started[@]} == 0 ]] && ((++empty == 3)) && return
    for pid in "\${!started[@]}"; do
      read_stat "$pid" && [[ \${started[$pid]} == \${stat[1]} ]] && kill -KILL "$pid" 2>/dev/null
    done
    order=() started=()
  done
}

# The first time follows at once.
read_now
until=$((now + 100))
while :; do
  read_now
  ((until <= now)) && freeze tree
  # A second at most: the machine may sleep meanwhile.
  left=$((until - now))
  ((left <= 0 || left > 100)) && left=100
  [[ $unready ]] && left=5
  printf -v left '%d.%02d' $((left / 100)) $((left % 100))
  if read -r -t "$left" word value; then
    case $word in
      until)
        until=$value
        read_now
        [[ $frozen ]] && ((until > now)) && thaw
        ;;
      kill) kill_all tree ;;
      end) exit 0 ;;
    esac
  elif (($? <= 128)); then
    # The server has died: its id may be that of another process by now.
    kill_all
    exit 0
  fi
done
`
