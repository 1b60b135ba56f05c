/** A process of its own that asks `/alive` again and again. Told anything, it answers the longest it had to wait since the last time, milliseconds. */
import { get } from 'node:http'

let longestMs = 0
let askedAt = performance.now()
process.on('message', () => {
  // What is still waited for counts as well.
  process.send!(Math.max(longestMs, performance.now() - askedAt)) // there is a parent: it has just said something
  longestMs = 0
})
process.once('disconnect', () => process.exit())

function ask(): void {
  askedAt = performance.now()
  const again = () => {
    longestMs = Math.max(longestMs, performance.now() - askedAt)
    askedAt = performance.now()
    setTimeout(ask, 2)
  }
  get(`${process.argv[2]}/alive`, (response) => response.resume().once('end', again)).once('error', again)
}

ask()
