/** A thread of its own that asks `/alive` again and again, and knows the longest it had to wait. */
import { get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

let longestMs = 0
let askedAt = performance.now()
parentPort!.on('message', () => {
  // What is still waited for counts as well.
  parentPort!.postMessage(Math.max(longestMs, performance.now() - askedAt))
  longestMs = 0
})

function ask(): void {
  askedAt = performance.now()
  const again = () => {
    longestMs = Math.max(longestMs, performance.now() - askedAt)
    setTimeout(ask, 2)
  }
  get(`${String(workerData)}/alive`, (response) => response.resume().once('end', again)).once('error', again)
}

ask()
