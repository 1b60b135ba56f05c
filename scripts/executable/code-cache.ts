/**
 * Runs the bundle and writes a code cache of each chunk that it loads, with the functions that were used until then:
 * `node FLAGS code-cache.ts CHUNKS CACHES COMMAND…`. It writes those of the chunks loaded so far at the message
 * `write`, and the others at the exit. A cache that exists is kept.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import type { Script } from 'node:vm'
import { endPreparation, prepareProcess } from '../../src/process-settings.ts'
import type { Chunk } from './load-chunks.ts'
import { runChunk } from './load-chunks.ts'

const [chunks = '', caches = ''] = process.argv.splice(2, 2)

/** V8 accepts a cache only under the flags that it was made with, which this tag stands for. */
const loaded = new Map<string, { readonly script: Script; readonly tag: number }>()

process.once('message', () => {
  writeCaches()
  process.disconnect?.()
})
process.on('exit', writeCaches)

runChunk('./main.js', read, (name, script) => {
  if (script.cachedDataRejected === true) throw new Error(`V8 rejects the code cache of ${name}.`)
  loaded.set(name, { script, tag: cachedDataVersionTag() })
})

/** Returns a chunk with the code cache that another run made. */
function read(name: string): Chunk {
  const [source, cache] = [readFileSync(join(chunks, name), 'latin1'), join(caches, name)]
  return { source, ...(existsSync(cache) && { cachedData: readFileSync(cache) }) }
}

function writeCaches(): void {
  // The flags of chunks that a start loads, and of those that are loaded later.
  for (const setFlags of [prepareProcess, endPreparation]) {
    setFlags()
    for (const [name, { script, tag }] of loaded) {
      const file = join(caches, name)
      if (tag === cachedDataVersionTag() && !existsSync(file)) writeFileSync(file, script.createCachedData())
    }
  }
}
