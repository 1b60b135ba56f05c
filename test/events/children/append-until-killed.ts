/** A server for the crash test: appends without pause, several at once, and prints the head after each acknowledgement. */
import { writeSync } from 'node:fs'
import { createJsonlStore } from '../../../src/storage/files/log/jsonl-store.ts'
import { append, message } from '../fixtures.ts'

const [directory, id] = process.argv.slice(2) as [string, string]
const store = createJsonlStore({ directory })
const log = await store.create(id)

async function writer(name: number): Promise<never> {
  for (let i = 0; ; i++) {
    const drafts = Array.from({ length: (i % 3) + 1 }, () => message(`${name} ${'x'.repeat((i * 37) % 3000)}`))
    const events = await append(log, ...drafts)
    writeSync(1, `${events.at(-1)!.seq}\n`)
  }
}

await Promise.all([writer(1), writer(2), writer(3)])
