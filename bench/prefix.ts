/**
 * How many requests of a long conversation extend the one before byte for byte, so that the prompt cache of a provider is
 * used: with several runs, with and without a message, with compactions, and with a server that is killed in between.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ScriptedQuestion, ScriptedTurn } from '../src/llm/scripted/script.ts'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'

const PROVIDERS = ['openai', 'openai_responses', 'anthropic'] as const
const RUNS = 6
const STEPS = 25
/** Small, so that each run is compacted. */
const CONTEXT_WINDOW = 16_000
const RESULT_CHARS = 1500

export async function benchPrefix(): Promise<Row[]> {
  const all: Counts[] = []
  for (const provider of PROVIDERS) all.push(await converse(provider))
  const [pairs, extended, compactions] = (['pairs', 'extended', 'compactions'] as const).map((field) =>
    all.reduce((sum, each) => sum + each[field], 0),
  ) as [number, number, number]
  const what = `requests of ${RUNS * STEPS} steps that extend the one before byte for byte, in each API`
  const share = `${((100 * extended) / pairs).toFixed(1)} %`
  return [[what, share, `${extended} of ${pairs}, between ${compactions} compactions and over a killed server`]]
}

type Counts = { readonly pairs: number; readonly extended: number; readonly compactions: number }

async function converse(provider: (typeof PROVIDERS)[number]): Promise<Counts> {
  const extensions: boolean[] = []
  await using model = await startScriptedModel(createScript(extensions))
  const home = await mkdtemp(join(tmpdir(), 'bench-prefix-'))
  let server = await startServerProcess(home)
  try {
    const llm_config = { model: 'bench', base_url: model.baseUrl, provider, context_window: CONTEXT_WINDOW }
    const created = await send(`${URL}/conversations`, { llm_config, tools: ['Bash'] })
    const path = `${URL}/conversations/${(JSON.parse(created) as { id: string }).id}`
    for (let run = 0; run < RUNS; run++) {
      // Every other run begins without a message.
      if (run % 2 === 0) await send(`${path}/messages`, { message: { role: 'user', content: `Message ${run}.` } })
      await send(`${path}/run`, { wait: true })
      if (run !== RUNS / 2) continue
      await server.kill()
      server = await startServerProcess(home)
    }
    return count(extensions, await eventTypes(path))
  } finally {
    await server.kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Notes of each request whether it extends the one before. Answers so many calls, and then a text. */
function createScript(extensions: boolean[]): (question: ScriptedQuestion) => ScriptedTurn {
  let before = ''
  let answers = 0
  const command = `printf '%${RESULT_CHARS}s' x`
  return ({ text }) => {
    if (text.includes('Write a summary from which the agent can continue')) return { text: 'What was done.' }
    extensions.push(before !== '' && text.startsWith(before))
    before = text.replace(END, '')
    const isLast = ++answers % STEPS === 0
    return isLast ? { text: 'Done.' } : { calls: [{ name: 'Bash', arguments: { command } }] }
  }
}

/** What closes a body. In Messages, a mark for the prompt cache is moved to the end each time. */
const END = /(,"cache_control":\{"type":"ephemeral"\}\}\]\}|)\]\}$/

/** The types of the events that say which requests were answered, and between which there was a compaction. */
async function eventTypes(path: string): Promise<string[]> {
  const types: string[] = []
  for (let after = 0; ;) {
    const query = `types=AssistantMessage,Condensation&limit=1000&after_seq=${after}`
    const response = await fetch(`${path}/events?${query}`, { headers: { authorization: `Bearer ${KEY}` } })
    const { items } = (await response.json()) as { items: { type: string; seq: number }[] }
    if (items.length === 0) return types
    types.push(...items.map(({ type }) => type))
    after = items.at(-1)?.seq ?? after
  }
}

function count(extensions: readonly boolean[], types: readonly string[]): Counts {
  const answers = types.filter((type) => type === 'AssistantMessage').length
  if (answers !== extensions.length) throw new Error(`${extensions.length} requests, ${answers} answers`)
  const firstAfter = new Set([0])
  let answered = 0
  for (const type of types) {
    if (type === 'AssistantMessage') answered++
    else firstAfter.add(answered)
  }
  const between = extensions.filter((_, at) => !firstAfter.has(at))
  const compactions = types.length - answers
  return { pairs: between.length, extended: between.filter(Boolean).length, compactions }
}
