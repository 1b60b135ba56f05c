/** How long a key press takes to the screen of the chat, while a model streams a long Markdown answer. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Terminal } from '../test/cli/chat/support/terminal.ts'
import { setStage } from '../test/support/agent.ts'
import { KEY } from '../test/support/server.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const KEYS = 60
const GAP_MS = 50
const PARAGRAPH = 'Some **bold** text with `code`, a [link](https://example.org), and a list:\n\n- one\n- two\n\n'
const PROGRAM = join(import.meta.dirname, '../test/cli/chat/children/chat-program.ts')

export async function benchChat(): Promise<Row[]> {
  const text = PARAGRAPH.repeat(400)
  await using stage = await setStage([{ text, chunk_delay_ms: 5 }])
  const id = await stage.create()
  const env = { CHAT_URL: stage.server.url, CHAT_KEY: KEY, CHAT_ID: id }
  const began = performance.now()
  await using terminal = new Terminal([process.execPath, PROGRAM], { env })
  await terminal.shows('/help lists')
  const start = performance.now() - began
  await terminal.say('write')
  await terminal.shows('one')
  const times: number[] = []
  for (let key = 0; key < KEYS; key++) times.push(await pressed(terminal, 'x'.repeat(key + 1)))
  const sorted = times.toSorted((a, b) => a - b)
  const slowest = sorted.at(-2) ?? 0
  return [
    [
      'a key press to the screen of the chat, while a model streams',
      `${median(times).toFixed(1)} ms, second slowest ${slowest.toFixed(0)} ms`,
      '',
    ],
    ['the start of the chat, to its prompt', `${start.toFixed(0)} ms`, ''],
  ]
}

/** Presses one key, and returns when the terminal has received the new content of the prompt. */
async function pressed(terminal: Terminal, draft: string): Promise<number> {
  const from = terminal.output.length
  const began = performance.now()
  terminal.press('x')
  while (!terminal.output.includes(draft, from)) await sleep(0.2)
  const took = performance.now() - began
  await sleep(GAP_MS)
  return took
}
