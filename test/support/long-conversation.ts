/** Makes the log of a conversation as long as it becomes in weeks: straight in the file, because to post them takes minutes. */
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { textOfWrite } from '../../src/storage/files/log/event-line.ts'
import { serialiseDraft, storedFromDraft } from '../../src/storage/shared/stored-event.ts'

const BLOCK = 1000
const TEXT = 'x'.repeat(400)

/** Adds messages until there are so many events: `message 17 xxx…` has the seq 17. The server must not run. */
export async function lengthen(dataDir: string, id: string, events: number): Promise<void> {
  const path = join(dataDir, 'sessions', id, 'events.jsonl')
  const first = readFileSync(path, 'utf8').split('\n').length
  const file = createWriteStream(path, { flags: 'a' })
  const began = Date.now() - events
  for (let seq = first; seq <= events;) {
    let text = ''
    for (const end = Math.min(seq + BLOCK, events + 1); seq < end; seq++) {
      const line = serialiseDraft(draft(seq), { ms: began + seq, conversationId: id })
      text += textOfWrite([storedFromDraft(seq, line).json])
    }
    if (!file.write(text)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'close')
}

const draft = (seq: number): EventDraft => ({
  type: 'UserMessage',
  source: 'user',
  content: [{ type: 'text', text: `message ${seq} ${TEXT.slice(0, (seq * 7919) % TEXT.length)}` }],
  run: false,
})
