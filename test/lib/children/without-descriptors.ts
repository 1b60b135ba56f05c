/** Runs with few file descriptors: uses them all up, starts a process, and prints what it is refused with. */
import { closeSync, openSync } from 'node:fs'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { HostEnvironment, startProcess } from '../../../src/lib/start-process.ts'

const taken: number[] = []
try {
  for (;;) taken.push(openSync('/dev/null', 'r'))
} catch {
  // there are no more
}
let code: unknown
try {
  startProcess('true', [], { env: HostEnvironment.plain, stdio: 'pipe' })
} catch (error) {
  code = (error as NodeJS.ErrnoException).code
}
for (const fd of taken) closeSync(fd)
// What fails later fails by then.
for (let turn = 0; turn < 20; turn++) await yieldToLoop()
console.log(code)
