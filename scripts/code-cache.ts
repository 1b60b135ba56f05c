/**
 * Runs the bundle as a server until it gets the message `write`, and then writes the functions that are compiled by then:
 * `node FLAGS scripts/code-cache.ts SOURCE CACHE`. V8 accepts them only under the flags that they were made with.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Script } from 'node:vm'
import { endPreparation } from '../src/process-settings.ts'

const [source = '', cache = ''] = process.argv.splice(2, 2, 'serve')
const script = new Script(readFileSync(source, 'latin1'), { filename: source })

process.once('message', () => {
  // The cache names the flags of this moment.
  endPreparation()
  writeFileSync(cache, script.createCachedData())
  process.kill(process.pid, 'SIGTERM')
})
script.runInThisContext()({ url: import.meta.url })
