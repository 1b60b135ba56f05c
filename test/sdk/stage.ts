/** A scripted model for queries: what the user says names the tool that the agent calls, and its input as JSON. */
import { spawn } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { QueryEvent, QueryOptions, query } from '../../src/index.ts'
import { createServer } from '../../src/index.ts'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'

export type SdkStage = AsyncDisposable & {
  readonly home: string
  readonly model: ScriptedModel
  /** The model, and the data directory. */
  readonly options: QueryOptions & { readonly persistDir: string }
}

/** `call NAME JSON` calls the tool, and the answer is what it returned; `calls JSON` makes several calls. Anything else is repeated; `slow once` is slow for the first time only. */
export async function setSdkStage(): Promise<SdkStage> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-sdk-')))
  const answered = new Set<string>()
  const model = await startScriptedModel(({ body }) => turnFor(body, answered))
  return {
    home,
    model,
    options: {
      model: 'scripted',
      baseUrl: model.baseUrl,
      apiKey: 'scripted-model-key',
      persistDir: join(home, 'data'),
    },
    async [Symbol.asyncDispose]() {
      await model.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** A stage with one server for all tests of a file, because each query would start its own. Both end with the file. */
export async function setServedStage(settings: Readonly<Record<string, string>> = {}) {
  const stage = await setSdkStage()
  const server = await createServer({ persistDir: stage.options.persistDir, settings })
  afterAll(async () => {
    await server.close()
    await stage[Symbol.asyncDispose]()
  })
  return { ...stage, server }
}

function turnFor({ messages }: ScriptedQuestion['body'], answered: Set<string>): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `It said: ${said}` }
  if (said === 'refuse') return { status: 401, error: { message: 'Incorrect API key provided.' } }
  // It is asked for it again in other words.
  const wanted = messages.findLast(({ role, content }) => role === 'user' && /^\{"n": \d\}$/.test(String(content)))
  if (wanted) return { text: String(wanted.content) }
  const [, name = '', json = ''] = /^call (\w+) ?(.*)$/s.exec(said) ?? []
  if (name !== '') return { calls: [{ name, arguments: json || '{}' }] }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as a test wrote it
  if (said.startsWith('calls ')) return { calls: JSON.parse(said.slice(6)) as ScriptedTurn['calls'] }
  const isAgain = said.startsWith('slow once') && answered.has(said)
  answered.add(said)
  return said.startsWith('slow') && !isAgain ? { text: said, chunk_delay_ms: 100 } : { text: said }
}

/** Starts a program whose query has a function as a hook; it denies each call of Bash, or hangs if the prompt says so. */
export function startHooked(options: QueryOptions, prompt: string) {
  const program = join(import.meta.dirname, 'children/hooked-query.ts')
  return spawn(process.execPath, [program, JSON.stringify(options), prompt], { stdio: ['ignore', 'pipe', 'inherit'] })
}

export async function eventsOf(asked: ReturnType<typeof query>): Promise<QueryEvent[]> {
  return await Array.fromAsync(asked)
}

export const resultsIn = (events: readonly QueryEvent[]) => events.filter((event) => event.type === 'Result')
