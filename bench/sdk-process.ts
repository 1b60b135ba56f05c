/** The program that `bench/sdk.ts` measures: `fill` makes a long session, `measure` continues it with one message. */
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDraft } from '../src/contract/events/event.ts'
import { query, run, sessions } from '../src/index.ts'
import { textOfWrite } from '../src/storage/files/log/event-line.ts'
import { serialiseDraft, storedFromDraft } from '../src/storage/shared/stored-event.ts'

export type SdkMeasured = { readonly grownMb: number; readonly readingMb: number; readonly firstEventMs: number }

const TEXT = 'x'.repeat(200)

const [mode, dataDir = '', modelUrl = '', events = ''] = process.argv.slice(2)
const place = { persistDir: dataDir }
const options = { ...place, model: 'bench', baseUrl: modelUrl, apiKey: 'bench-model-key' }
if (mode === 'fill') await fill()
if (mode === 'measure') process.stdout.write(JSON.stringify(await measure()))

/** Writes messages that were never answered into the file of a session. */
async function fill(): Promise<void> {
  const { sessionId } = await run({ prompt: '{}', options })
  const path = join(dataDir, 'sessions', sessionId, 'events.jsonl')
  const lines = (await readFile(path, 'utf8')).split('\n').length - 1
  const draft: EventDraft = { type: 'UserMessage', source: 'user', content: [{ type: 'text', text: TEXT }], run: false }
  let text = ''
  for (let seq = lines + 1; seq <= Number(events); seq++) {
    const line = serialiseDraft(draft, { ms: Date.now(), conversationId: sessionId })
    text += textOfWrite([storedFromDraft(seq, line).json])
  }
  await appendFile(path, text)
}

async function measure(): Promise<SdkMeasured> {
  const before = residentMb()
  const began = performance.now()
  let firstEventMs = 0
  let grownMb = 0
  let id = ''
  for await (const event of query({ prompt: '{}', options: { ...place, continue: true } })) {
    firstEventMs ||= performance.now() - began
    if (event.type !== 'Result') continue
    grownMb = residentMb() - before
    id = event.session_id
  }
  const afterwards = residentMb()
  let most = 0
  let count = 0
  for await (const _ of sessions(place).read(id, { limit: 1000 })) {
    count++
    if (count % 1000 === 0) most = Math.max(most, residentMb())
  }
  if (count < Number(events)) throw new Error(`The session has only ${count} events.`)
  return { grownMb, readingMb: most - afterwards, firstEventMs }
}

function residentMb(): number {
  return process.memoryUsage.rss() / 1e6
}
