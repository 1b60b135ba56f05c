import { readFileSync } from 'node:fs'

/** Linux reports these times in hundredths of a second to every program. */
const TICKS_PER_SECOND = 100

/** Seconds of processor time, user and system, of this process and of its children that have ended. Linux only. */
export function processorSeconds(): { readonly own: number; readonly children: number } {
  // The name of the program, in parentheses, may contain blanks: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const seconds = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) / TICKS_PER_SECOND
  return { own: seconds(11), children: seconds(13) }
}
