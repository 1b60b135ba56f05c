/** Runs where no file may grow beyond a limit: fills a table of summaries up to it, and prints what happened as JSON. */
import { existsSync, writeFileSync } from 'node:fs'
import { SummaryTable } from '../../../../src/storage/files/summary-table.ts'

// Its default is to kill the process, instead of letting the write fail.
process.on('SIGXFSZ', () => undefined)

const [path] = process.argv.slice(2) as [string]
const faults: unknown[] = []
const open = () => new SummaryTable({ path, onFault: (error) => void faults.push(error) })
const times = { createdAt: 1, updatedAt: 1, waitsSince: undefined, deadline: undefined }
const more = { lastWords: '', model: undefined, costUsd: undefined, isArchived: false, waiting: 0 }
const texts = {
  ...more,
  title: undefined,
  userId: undefined,
  profile: undefined,
  labels: [],
  fields: {},
  idempotency: undefined,
}
const noted = (id: string, preview: string) => ({
  summary: { id, status: 'idle', lastSeq: 1, preview, ...times, ...texts } as const,
  stamp: { size: 1, mtimeMs: 1 },
})

const table = open()
for (let n = 0; faults.length === 0; n++) {
  table.note(noted(`${n}`, 'x'.repeat(1500)))
  await table.tidy(() => true)
}
await table.close()
const reopened = open()
const kept = (await reopened.read()).size
const faultsOfNotes = faults.length
reopened.note(noted('huge', 'x'.repeat(200_000)))
await reopened.forget('1')
const isRemoved = !existsSync(path)
await reopened.close()
writeFileSync(1, JSON.stringify({ kept, faults: [faultsOfNotes, faults.length], isRemoved }))
