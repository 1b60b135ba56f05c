/** Commands that run another one in a different way, as another user, on another machine or later. */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'
import type { Unwrapped, WrappedText } from './unwrapped.ts'

export const LAUNCHERS: ReadonlySet<string> = new Set(
  `apptainer at batch bunx busybox bwrap chroot chrt crontab dbus-run-session doas docker entr expect fakeroot
  firejail flatpak-spawn flock gdb hyperfine ionice kubectl ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ltrace nerdctl
  nsenter numactl npx parallel perf pkexec pnpx podman proot rlwrap rsh runuser rush screen script setarch setpriv
  singularity ssh sshpass start-stop-daemon strace su sudo sudoedit systemd-run taskset tmux torify torsocks toybox
  tsocks unbuffer unshare uvx valgrind vagrant watch watchexec xvfb-run`.split(/\s+/),
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
