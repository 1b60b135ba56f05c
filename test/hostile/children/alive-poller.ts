/**
 * A process of its own that asks `/alive` of a server again and again. On any message, it answers the longest that it had
 * to wait since the last time, in milliseconds of processor time of the server's main thread: other programs on the
 * machine make it no longer.
 */
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { takeTime } from '../../support/take-time.ts'

const [url, pid] = process.argv.slice(2)
/** The kernel counts in hundredths of a second. */
const TICK_MS = 10

/** Of the main thread, in user mode and in the kernel: fields 14 and 15 of the file, behind a name with any characters. */
function serverMs(): number {
  const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

let longestMs = 0
let askedAt = serverMs()
process.on('message', () => {
  // What is still waited for counts as well.
  process.send!(Math.max(longestMs, serverMs() - askedAt)) // there is a parent: it has just said something
  longestMs = 0
})
process.once('disconnect', () => process.exit())

function ask(): void {
  askedAt = serverMs()
  const again = () => {
    longestMs = Math.max(longestMs, serverMs() - askedAt)
    askedAt = serverMs()
    void takeTime(2).then(ask)
  }
  get(`${url}/alive`, (response) => response.resume().once('end', again)).once('error', again)
}

ask()
