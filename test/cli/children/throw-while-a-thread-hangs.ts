/** Throws an error that nobody catches while a thread waits for the other end of the pipe that is its argument. */
import { open } from 'node:fs/promises'
import { endDespiteThreads } from '../../../src/cli/terminal/exit.ts'

endDespiteThreads()
void open(process.argv[2] ?? '')
// oxlint-disable-next-line tests/sleep -- the throw is from a timer, and nobody waits for it
setTimeout(() => {
  throw new Error('a mistake in the program')
}, 10)
