/** Runs where no file may grow beyond a limit: fills a log up to it, and prints what happened as JSON. */
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EventLog } from '../../../src/events/event-log.ts'
import { createJsonlStore } from '../../../src/storage/files/log/jsonl-store.ts'
import { message, readAll, seqsOf } from '../fixtures.ts'

// Its default is to kill the process, instead of letting the write fail.
process.on('SIGXFSZ', () => undefined)

const [directory, id] = process.argv.slice(2) as [string, string]
const path = join(directory, id, 'events.jsonl')
const store = createJsonlStore({ directory })
const log = new EventLog({ log: await store.create(id), onListenerError: () => undefined })
const shown: number[] = []
log.subscribe({ onEvents: (events) => shown.push(...events.map(({ seq }) => seq)) })

async function tryToAppend(...texts: string[]): Promise<string> {
  return await log.append(texts.map(message)).then(
    (events) => `stored ${seqsOf(events).join()}`,
    (error: { code: string }) => error.code,
  )
}

const steps: unknown[] = []
async function step(...appends: Promise<string>[]): Promise<void> {
  const outcomes = await Promise.all(appends)
  // Every line has one byte more than its event.
  const expectedSize = (await readAll(log)).reduce((size, { json }) => size + json.length + 1, 0)
  steps.push({ outcomes, isTruncated: statSync(path).size === expectedSize })
}

const huge = 'x'.repeat(100_000)
await step(tryToAppend('a'))
await step(tryToAppend('b', huge))
await step(tryToAppend('c'), tryToAppend(huge), tryToAppend('in one write with the one before'))
await step(tryToAppend('d'))

const read = seqsOf(await readAll(log))
await log.close('closing')
const { repaired = null } = await store.open(id)
writeFileSync(1, JSON.stringify({ steps, read, shown, repaired, failed: log.failed }))
