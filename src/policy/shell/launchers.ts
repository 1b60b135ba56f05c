/** Commands that run another one in a different way, as another user, on another machine or later. */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'
import type { Unwrapped, WrappedText } from './unwrapped.ts'
import { PLAIN } from './unwrapped.ts'

export const LAUNCHERS: ReadonlySet<string> = new Set(
  `abduco apptainer at batch bunx busybox bwrap capsh catchsegv cgexec chronic choom chroot chrt coreutils corepack cpulimit
  crontab daemonize dbus-launch dbus-run-session distrobox doas docker dtach eatmydata entr expect fakechroot fakeroot
  faketime firejail flatpak-spawn flock gdb gpg-agent heaptrack hyperfine i386 ifne ionice kubectl
  ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 linux32 linux64 lxc ltrace machinectl mispipe mosh
  nerdctl nix-shell nsenter numactl npx parallel pee perf pkexec pnpx podman prlimit proot proxychains
  proxychains4 rlwrap rr rsh run-parts runcon runuser rush schroot screen script scriptlive setarch setpriv sg
  singularity ssh ssh-agent sshpass start-stop-daemon strace su sudo sudoedit systemd-inhibit systemd-nspawn systemd-run
  taskset tmux torify torsocks toybox tsocks uclampset uname26 unbuffer unshare uvx valgrind vagrant watch
  watchexec x86_64 xvfb-run zellij`.split(/\s+/),
)

/** Which of its arguments is the command differs: each may be where it begins. A text with spaces may be a script. */
export function unwrapLauncher(words: readonly ShellWord[]): Unwrapped {
  const runs = words.flatMap((word, at): WrappedText[] => {
    const text = literalOf(word)
    if (text !== undefined && /[\s;&|]/.test(text)) return [{ script: text, elsewhere: true }]
    if (text?.startsWith('-')) return valueOf(text)
    return [{ words: words.slice(at), elsewhere: true }]
  })
  return { kind: 'launcher', runs, variables: [] }
}

/** `--command=rm x`. */
const valueOf = (option: string): WrappedText[] =>
  option.includes('=') ? [{ script: option.slice(option.indexOf('=') + 1), elsewhere: true }] : []

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

/** `git rebase --exec`, `git bisect run`, `git submodule foreach`, `git filter-branch --tree-filter`. */
const GIT_RUNS = /^(-x.*|--ex(ec|tcmd)(=.*)?|run|foreach|--[a-z]+-filter)$/

export function readSubcommand(name: string, words: readonly ShellWord[]): Unwrapped {
  const texts = words.map((word) => literalOf(word) ?? '')
  if (name === 'git') return texts.some((text) => GIT_RUNS.test(text)) ? unwrapLauncher(words) : PLAIN
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined
  if (!subcommand) return PLAIN
  // What follows an option may be its value.
  const end = texts.findIndex((text, at) => !text.startsWith('-') && !texts[at - 1]?.startsWith('-'))
  const first = end < 0 ? texts : texts.slice(0, end + 1)
  return first.some((text) => subcommand.test(text)) ? unwrapLauncher(words) : PLAIN
}
