/** Runs with few file descriptors: runs a command in each of many conversations, and prints their outputs as JSON. */
import { writeFileSync } from 'node:fs'
import { areFilesShort, ownOpenFiles } from '../../../src/limits/own-limits.ts'
import { realShells, setBench } from '../fixtures.ts'

const CONVERSATIONS = 24

const limit = ownOpenFiles()
const idle = { afterMs: 3_600_000, shortMs: 20, isShort: () => areFilesShort(limit) }
const bench = await setBench({ manager: { idle }, deps: { createShells: realShells() } })
const outputs: string[] = []
for (let n = 0; n < CONVERSATIONS; n++) {
  const { id, exec } = await bench.converse()
  // They stay open, as those that somebody follows.
  bench.manager.hold(id)
  const request = { session_id: 'x', background: false, kill_on_disconnect: false, command: `echo ${n}` }
  const { stdout } = await exec.commands.run(request)
  outputs.push(stdout.trim())
}
writeFileSync(1, JSON.stringify({ limit, outputs }))
await bench[Symbol.asyncDispose]()
