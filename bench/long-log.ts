/** How long a run takes to start on a conversation with a long log, and how much memory that takes. */
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventDraft } from '../src/contract/events/event.ts'
import { textOfWrite } from '../src/storage/files/log/event-line.ts'
import { serialiseDraft, storedFromDraft } from '../src/storage/shared/stored-event.ts'
import type { ModelProcess } from './model-process.ts'
import { startModel } from './model-process.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const LOG_BYTES = 100_000_000
/** The part that is sent to the model; the rest is what clients and commands have left in the log. */
const SENT_BYTES = 1_000_000
const ROUNDS = 5
const TARGET_MS = 500
const TARGET_MB = 50

export async function benchLongLog(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-long-log-'))
  await using model = await startModel()
  try {
    const id = await makeLongLog(home, model)
    const starts: number[] = []
    const megabytes: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const { ms, grownMb } = await timeRunStart(home, id, model)
      starts.push(ms)
      megabytes.push(grownMb)
    }
    const [ms, grown] = [median(starts), median(megabytes)]
    const log = `a log of ${LOG_BYTES / 1e6} MB, ${SENT_BYTES / 1e6} MB of which are sent`
    return [
      [
        `\`run\` to the request at the model, on ${log}`,
        `${ms.toFixed(0)} ms`,
        `${(ms / TARGET_MS).toFixed(2)} of ${TARGET_MS} ms`,
      ],
      ['memory that this takes', `${grown.toFixed(0)} MB`, `${(grown / TARGET_MB).toFixed(2)} of ${TARGET_MB} MB`],
    ]
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Writes into the file of a conversation that the server has made. */
async function makeLongLog(home: string, model: ModelProcess): Promise<string> {
  const server = await startServerProcess(home)
  const llm_config = { model: 'bench', base_url: model.url, api_key: 'bench-model-key' }
  const { id } = JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }
  await server.kill()
  const path = join(home, 'data/sessions', id, 'events.jsonl')
  const lines = readFileSync(path, 'utf8').split('\n').length - 1
  const file = createWriteStream(path, { flags: 'a' })
  const began = Date.now()
  for (let [seq, bytes] = [lines + 1, 0]; bytes < LOG_BYTES;) {
    let text = ''
    for (const end = seq + 1000; seq < end; seq++) {
      const line = serialiseDraft(draft(seq), { ms: began + seq, conversationId: id })
      text += textOfWrite([storedFromDraft(seq, line).json])
    }
    bytes += text.length
    if (!file.write(text)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'close')
  return id
}

const SENT_ONE_IN = Math.round(LOG_BYTES / SENT_BYTES)

function draft(seq: number): EventDraft {
  const text = 'x'.repeat((seq * 7919) % 1000)
  if (seq % SENT_ONE_IN !== 0) return { type: 'ClientEvent', source: 'user', name: 'progress', data: { text } }
  return { type: 'UserMessage', source: 'user', content: [{ type: 'text', text: `{} ${text}` }], run: false }
}

/** Measures a server that has just started and opened the conversation. */
async function timeRunStart(home: string, id: string, model: ModelProcess): Promise<{ ms: number; grownMb: number }> {
  const server = await startServerProcess(home)
  try {
    await fetch(`${URL}/conversations/${id}`, { headers: { authorization: `Bearer ${KEY}` } })
    await model.exchanges()
    const before = residentMb(server.pid)
    const began = Number(process.hrtime.bigint()) / 1e6
    await send(`${URL}/conversations/${id}/messages`, { message: { role: 'user', content: '{}' }, run: true })
    for (;;) {
      const [exchange] = await model.exchanges()
      if (exchange) return { ms: exchange.came - began, grownMb: residentMb(server.pid) - before }
      await sleep(5)
    }
  } finally {
    await server.kill()
  }
}

function residentMb(pid: number): number {
  const kib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  return (kib * 1024) / 1e6
}
