/** Runs with no process left that its user may start, and prints how a start and a search are refused, as JSON. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { openDirectory } from '../../../src/files/opened-path.ts'
import { largeFiles } from '../../../src/files/search/ripgrep.ts'
import { startProcess } from '../../../src/lib/start-process.ts'

// Before the limit: this starts the threads for files.
await using directory = await openDirectory('/dev')
await promisify(execFile)('prlimit', ['--pid', String(process.pid), '--nproc=1'])
const [started] = (await once(startProcess('/bin/true', [], {}), 'error')) as [Error]
const search = largeFiles({ directory, signal: new AbortController().signal, onCutShort: () => {} })
const searched = await Array.fromAsync(search).then(
  () => 'found nothing',
  (error: Error) => error.message,
)
console.log(JSON.stringify([started.message, searched]))
