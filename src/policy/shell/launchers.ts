/** Commands that run another one in a different way, as another user, on another machine or later. */
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf } from './shell-word.ts'
import type { UnwrappedCommand, WrappedText } from './unwrapped.ts'
import { PLAIN } from './unwrapped.ts'

export const LAUNCHERS: ReadonlySet<string> = new Set(
  `abduco alacritty ansible apptainer asciinema at autossh batch bunx busybox bwrap byobu capsh catatonit
  catchsegv cgexec choom chpst chronic chroot chrt clush concurrently corepack coreutils coverage cpulimit
  crictl crontab cross-env cross-env-shell ctr daemonize dbus-launch dbus-run-session distrobox doas docker dsh
  dtach dumb-init eatmydata entr env-cmd envdir envuidgid expect fab fakechroot fakeroot fakeroot-ng faketime
  firejail flatpak-spawn flock foot forego foreman gamemoderun gdb gnome-terminal gosu gpg-agent heaptrack
  honcho hyperfine i386 ifne incus ionice kitty konsole kubectl ld-linux-aarch64.so.1 ld-linux-x86-64.so.2
  linux32 linux64 lldb logsave ltrace lxc lxc-attach lxc-execute machinectl mangohud mispipe mosh mpiexec
  mpirun nerdctl newgrp nix-shell nodemon npx nsenter numactl oc onchange optirun overmind parallel pdsh pee
  perf perf-stat pkexec pnpx podman prime-run primusrun prlimit proot proxychains proxychains4 pseudo pssh
  remsh rlwrap rr rsh run-parts runcon runuser rush s6-applyuidgid s6-envdir s6-setuidgid salt sbatch schroot
  screen script scriptlive sem setarch setlock setpriv setuidgid sg singularity socat softlimit srun ssh
  ssh-agent sshpass start-stop-daemon steam-run strace su su-exec sudo sudoedit switch_root systemd-inhibit
  systemd-nspawn systemd-run taskset terminalizer tini tmate tmux torify torsocks toybox ts-node-dev tsocks
  ttyrec uclampset uftrace uname26 unbuffer unshare urxvt uvx vagrant valgrind vglrun watch watchexec x86_64
  xterm xvfb-run zellij`.split(/\s+/),
)

/** They run it where they are, without one of the options below. */
const STAY = new Set(
  `bun bunx bundle docker hyperfine ionice kubectl ltrace nerdctl npm npx oc pdm perf pipenv pnpm pnpx podman poetry strace sudo
  taskset uv uvx valgrind watch yarn`.split(/\s+/),
)
const GO_ELSEWHERE = /^(-[CDw]|--(cwd|prefix|dir|directory|project|chdir|workdir|working-dir|wd|root))/

/**
 * Takes each argument for the possible beginning of the command, as it differs which one it is. A text with spaces may
 * be a script.
 */
export function unwrapLauncher(words: readonly ShellWord[], name = ''): UnwrappedCommand {
  const elsewhere = !STAY.has(name) || words.some((word) => GO_ELSEWHERE.test(startOf(word)))
  const runs = words.flatMap((word, at): WrappedText[] => {
    const text = literalOf(word)
    if (text !== undefined && /[\s;&|]/.test(text)) return [{ script: text, elsewhere }, ...valueOf(text, elsewhere)]
    if (text?.startsWith('-')) return valueOf(text, elsewhere)
    // Nothing runs a directory, and only a shell knows `.` as a command.
    return text !== undefined && /^[./]+$/.test(text) ? [] : [{ words: words.slice(at), elsewhere }]
  })
  return { kind: 'launcher', runs, variables: [] }
}

/** `--command=rm x`, `ProxyCommand=rm x`. */
const valueOf = (text: string, elsewhere: boolean): WrappedText[] =>
  /^[\w.-]+=/.test(text) ? [{ script: text.slice(text.indexOf('=') + 1), elsewhere }] : []

/** Programs that run another one only with these words after their name. */
const SUBCOMMANDS: Readonly<Record<string, RegExp>> = {
  asdf: /^exec$/,
  'aws-vault': /^exec$/,
  bun: /^(x|exec)$/,
  bundle: /^exec$/,
  conda: /^run$/,
  dotenv: /^/,
  direnv: /^exec$/,
  doppler: /^run$/,
  hatch: /^run$/,
  mamba: /^run$/,
  micromamba: /^run$/,
  mise: /^(x|exec)$/,
  nix: /^(run|shell|develop)$/,
  nodenv: /^exec$/,
  npm: /^(x|exec)$/,
  op: /^run$/,
  pdm: /^run$/,
  pipenv: /^run$/,
  pnpm: /^(dlx|exec)$/,
  poetry: /^run$/,
  pyenv: /^exec$/,
  rbenv: /^exec$/,
  rustup: /^run$/,
  uv: /^run$/,
  yarn: /^(dlx|exec)$/,
}

/** `git rebase --exec`, `git bisect run`, `git submodule foreach`, `git filter-branch --tree-filter`, also abbreviated. */
const GIT_RUNS =
  /^(-x.*|-O.+|--(e(x(e(c)?)?)?|ext[cmd]*|u(p(l[a-z-]*)?)?|rece[a-z-]*|op[a-z-]*)(=.*)?|run|foreach|--[a-z]+-filter)$/

export function readSubcommand(name: string, words: readonly ShellWord[]): UnwrappedCommand {
  const texts = words.map((word) => literalOf(word) ?? '')
  if (name === 'git')
    return texts.some((text) => GIT_RUNS.test(text)) || isCloneWith(texts) ? unwrapLauncher(words) : PLAIN
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined
  if (!subcommand) return PLAIN
  // What follows an option may be its value.
  const end = texts.findIndex((text, at) => !text.startsWith('-') && !texts[at - 1]?.startsWith('-'))
  const first = end < 0 ? texts : texts.slice(0, end + 1)
  return first.some((text) => subcommand.test(text)) ? unwrapLauncher(words, name) : PLAIN
}

/** `git clone -u program`. */
const isCloneWith = (texts: readonly string[]): boolean =>
  texts.includes('clone') && texts.some((text) => /^-[a-z]*u/.test(text))
