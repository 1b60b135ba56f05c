/** What a page of 100 events costs in a log of ten and of a million, at any depth. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EventDraft } from '../src/contract/events/event.ts'
import { textOfWrite } from '../src/storage/files/log/event-line.ts'
import { serialiseDraft, storedFromDraft } from '../src/storage/shared/stored-event.ts'
import type { StoredLog } from '../src/events/event-store.ts'
import { createJsonlStore } from '../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../src/lib/uuid7.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const PAGE = 100
const ROUNDS = 300

/** Median µs of a page of 100 events, each time of another place in the first, middle and last tenth of the log. */
type Places = { readonly start: number; readonly middle: number; readonly end: number }

export async function benchEventPage(events = 1_000_000): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'event-page-'))
  try {
    const id = uuid7()
    await writeLog(join(directory, id), id, events)
    const began = performance.now()
    const { log } = await createJsonlStore({ directory }).open(id)
    await log.read({ limit: PAGE, order: 'desc' })
    const openMs = performance.now() - began
    const { start, middle, end } = await measure(log)
    await log.close()
    const ratio = Math.max(start, middle, end) / Math.min(start, middle, end)
    const places = [start, middle, end].map((us) => us.toFixed(0)).join(' / ')
    const count = events.toLocaleString('en')
    return [
      [
        `a page of ${PAGE} at the start / middle / end of ${count} events`,
        `${places} µs`,
        `${ratio.toFixed(2)} slowest by fastest`,
      ],
      [`opening that log and reading its last page`, `${openMs.toFixed(0)} ms`, ''],
    ]
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure(log: StoredLog): Promise<Places> {
  const samples: number[][] = [[], [], []]
  // Turn by turn, so that what else the machine does hits all three alike; the first round warms up.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, from] of [0, 0.45, 0.9].entries()) {
      const afterSeq = Math.floor(log.head * (from + 0.1 * Math.random()))
      const began = performance.now()
      await log.read({ afterSeq: Math.max(0, Math.min(afterSeq, log.head - PAGE)), limit: PAGE })
      if (round > ROUNDS / 10) samples[i]!.push((performance.now() - began) * 1000)
    }
  }
  const [start, middle, end] = samples.map(median) as [number, number, number]
  return { start, middle, end }
}

/** Writes into the file, by the store's own serialiser: a million appends would take a minute. */
async function writeLog(directory: string, conversationId: string, events: number): Promise<void> {
  await mkdir(directory)
  const file = createWriteStream(join(directory, 'events.jsonl'))
  const began = Date.now() - events
  for (let seq = 1; seq <= events;) {
    let text = ''
    for (const end = Math.min(seq + 1000, events + 1); seq < end; seq++) {
      const line = serialiseDraft(draft(seq), { ms: began + seq, conversationId })
      text += textOfWrite([storedFromDraft(seq, line).json])
    }
    if (!file.write(text)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'close')
}

/** Returns an event; the sizes are like those in a real log: mostly short, now and then the output of a tool. */
function draft(seq: number): EventDraft {
  if (seq % 20 !== 0) {
    const text = 'x'.repeat((seq * 7919) % 400)
    return { type: 'UserMessage', source: 'user', content: [{ type: 'text', text }], run: false }
  }
  const output = 'line of output\n'.repeat((seq * 104_729) % 300)
  return {
    type: 'ToolResult',
    source: 'environment',
    tool_use_id: `call-${seq}`,
    output,
    is_error: false,
    duration_ms: 1,
  }
}
