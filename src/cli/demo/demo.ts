/** `agent-server demo`: a real server, a scripted model, and one small job, with its events printed live. */
import { randomBytes } from 'node:crypto'
import { startApp } from '../../app.ts'
import { readConfig, wantsColor } from '../../config/config.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { PostMessage } from '../../contract/run.ts'
import { startScriptedModel } from '../../llm/scripted/scripted-model.ts'
import { endPreparation } from '../../process-settings.ts'
import { makeDemoHome } from './demo-home.ts'
import { DEMO_REQUEST, DEMO_SCRIPT } from './demo-script.ts'
import { onEndSignals } from '../terminal/end-signals.ts'
import { createEventPrinter } from './event-printer.ts'
import { say } from '../terminal/terminal.ts'
import type { Event } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { createSseDecoder } from '../../lib/sse-decoder.ts'

/** Returns the exit code: that of the signal that has ended it, if any. `command` starts this program again. */
export async function demo(command: string): Promise<number | undefined> {
  const stop = new AbortController()
  let code: number | undefined
  using _signals = onEndSignals((codeOfSignal) => {
    if (code !== undefined) process.exit(codeOfSignal)
    code = codeOfSignal
    stop.abort()
  })
  try {
    await show(command, stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
  }
  return code
}

async function show(command: string, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { dataDir, workdirBase } = stack.use(await makeDemoHome())
  const model = stack.use(await startScriptedModel(DEMO_SCRIPT))
  const key = randomBytes(32).toString('hex')
  const app = await startApp(
    readConfig({
      OPENHANDS_MASTER_KEY: key,
      OPENHANDS_DATA_DIR: dataDir,
      OPENHANDS_WORKDIR_BASE: workdirBase,
      OPENHANDS_SERVER_HOST: 'localhost',
      OPENHANDS_SERVER_PORT: '0',
      OPENHANDS_LOG_LEVEL: 'CRITICAL',
      OPENHANDS_LOG_FORMAT: 'json',
    }),
  )
  stack.defer(async () => void (await app.close()))
  endPreparation()
  await app.ready
  signal.throwIfAborted()

  const print = createEventPrinter({ write: (text) => say(text), color: wantsColor() })
  print.note(
    `The server runs on ${app.url}. The model is a stand-in on this machine: its lines are scripted.\n` +
      'The server, the commands it runs and the files they make are real.\n',
  )
  const call = createCaller(app.url, key, signal)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this server wrote the answer
  const { id } = (await call('POST', '/conversations', {
    llm_config: { model: 'scripted', base_url: model.baseUrl },
  })) as ConversationView
  const stream = await fetch(`${app.url}/conversations/${id}/events/stream?after_seq=0&deltas=true`, {
    headers: { authorization: `Bearer ${key}` },
    signal,
  })
  const message: PostMessage = { message: { role: 'user', content: DEMO_REQUEST }, run: true }
  await call('POST', `/conversations/${id}/messages`, message)
  for await (const event of readEventStream(stream)) {
    print.event(event)
    if (event.type === 'Result') break
  }
  print.note(nextSteps(command))
}

function createCaller(url: string, key: string, signal: AbortSignal) {
  return async (method: string, path: string, body: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(url + path, { method, headers, body: JSON.stringify(body), signal })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return await response.json()
  }
}

const nextSteps = (command: string) => `
The same with a real model, in your own directory:

  OpenAI       OPENAI_API_KEY=sk-... ${command} --model gpt-5
  OpenRouter   OPENROUTER_API_KEY=sk-or-... ${command} --model openrouter/anthropic/claude-sonnet-4.5
  Ollama       ${command} --model qwen3-coder --base-url http://localhost:11434/v1
  vLLM         ${command} --model your-model --base-url http://localhost:8001/v1

Without --model it asks for a model and keeps it. The server for your programs is ${command} serve --generate-key:
the README shows what to send. docs/models.md has other providers.
`

/** Ends with the stream. Leaving the loop closes the connection. Throws if the server refused the stream. */
async function* readEventStream(response: Response): AsyncGenerator<Event | TransientEvent, void> {
  if (!response.ok || !response.body) throw new Error(`no event stream: ${response.status} ${await response.text()}`)
  const decoder = createSseDecoder()
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    // The server itself wrote this, so it is trusted to follow the contract. Final frames have no type inside.
    for (const { data } of decoder.push(piece)) {
      const frame: unknown = JSON.parse(data)
      if (isEvent(frame)) yield frame
    }
  }
}

const isEvent = (frame: unknown): frame is Event | TransientEvent =>
  typeof frame === 'object' && frame !== null && 'type' in frame
