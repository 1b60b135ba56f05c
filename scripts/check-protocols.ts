/**
 * `npm run check:protocols`: the clients of other protocols, in exact versions, talk to the executable, whose model is scripted.
 * `scripts/protocols/baseline.json` has the accepted failures with their reasons; the check fails if another case
 * fails, or if a listed one passes. Names of clients, or parts of them, limit it to these. A toolchain that the machine lacks is a
 * failure, unless `--without-missing` is given.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { mapBounded } from '../src/lib/map-bounded.ts'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'
import { builtExecutable } from './built-executable.ts'
import type { Toolchain } from './clients/toolchains.ts'
import { provideToolchain } from './clients/toolchains.ts'
import { useOwnTemporary } from './own-temporary.ts'
import type { Judgement } from './protocols/baseline.ts'
import { judge, readBaseline } from './protocols/baseline.ts'
import type { ClientUnderCheck, PinsName } from './protocols/clients.ts'
import { PROTOCOL_CLIENTS } from './protocols/clients.ts'
import { agentTurn } from './protocols/scripted-agent.ts'

/** The machines of CI have so many cores. */
const CONCURRENCY = 2
const MAX_FAULT_CHARACTERS = 1000

useOwnTemporary()
const { values: flags, positionals: only } = parseArgs({
  allowPositionals: true,
  options: { 'without-missing': { type: 'boolean' } },
})
const started = performance.now()
const say = (text: string) => process.stdout.write(`${text}\n`)

await using stack = new AsyncDisposableStack()
const work = realpathSync(mkdtempSync(join(tmpdir(), 'check-protocols-')))
stack.defer(() => rmSync(work, { recursive: true, force: true }))

const clients = PROTOCOL_CLIENTS.filter(({ name }) => only.length === 0 || only.some((part) => name.includes(part)))
if (clients.length === 0)
  throw new Error(`No client has such a name. There are ${PROTOCOL_CLIENTS.map(({ name }) => name).join('; ')}.`)
const baseline = readBaseline()
const toolchains = new Map<PinsName, Toolchain>()
for (const pins of new Set(clients.flatMap((client) => client.pins ?? []))) toolchains.set(pins, await provide(pins))
const settings = await startEverything()
finish(await mapBounded(clients, CONCURRENCY, check))

/** Packages that the registry does not have are missing, too. */
async function provide(pins: PinsName): Promise<Toolchain> {
  const folder = join(import.meta.dirname, 'protocols/pins', pins)
  const providing = provideToolchain(pins === 'npm' ? 'npm' : 'python', folder)
  const toolchain = await providing.catch((error: { stderr?: string; message: string }) => ({
    missing: (error.stderr || error.message).slice(0, MAX_FAULT_CHARACTERS),
  }))
  if ('missing' in toolchain) say(`MISSING ${pins}: not found: ${toolchain.missing}. Its clients are not tested.`)
  return toolchain
}

/** Returns the variables of the programs. The executable, and not the sources, is the server. */
async function startEverything(): Promise<Record<string, string>> {
  process.env['AGENT_SERVER_BIN'] ??= builtExecutable()
  // Loaded only now: it reads which program to start.
  const { KEY, startServer } = await import('../test/support/server.ts')
  const model = await startScriptedModel(agentTurn)
  stack.defer(() => model.close())
  const home = join(work, 'home')
  mkdirSync(home)
  const env = {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'none-needed',
    OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,mcp,acp,a2a',
    OPENHANDS_WORKDIR_BASE: home,
    OPENHANDS_CALLBACK_ALLOW: '127.0.0.1',
  }
  const server = stack.use(await startServer({ env }))
  const tools = ['Bash', 'FileEditor', 'TaskTracker', 'AskUserQuestion']
  const { status } = await server.call('PUT', '/profiles/default', { tools })
  if (status !== 201) throw new Error(`The profile was not made: ${status}`)
  return {
    AGENT_SERVER_URL: server.url,
    AGENT_SERVER_KEY: KEY,
    AGENT_SERVER_HOME: home,
    AGENT_SERVER_BIN: process.env['AGENT_SERVER_BIN'],
  }
}

type Row = { readonly client: ClientUnderCheck; readonly judgement: Judgement | undefined }

async function check(client: ClientUnderCheck): Promise<Row> {
  const toolchain = client.pins && toolchains.get(client.pins)
  if (toolchain && 'missing' in toolchain) return { client, judgement: undefined }
  const place = { env: { ...toolchain?.env, ...settings }, directory: toolchain?.directory, work }
  const judgement = judge(await client.run(place), baseline[client.name])
  say(`${seconds()} ${client.name}: ${judgement.faults.length === 0 ? 'works' : 'FAILED'}`)
  for (const fault of judgement.faults) say(`  ${fault.replaceAll('\n', '\n    ')}`)
  return { client, judgement }
}

function finish(rows: readonly Row[]): void {
  say('\n| client | version | cases passed | known to fail |\n|---|---|---|---|')
  for (const { client, judgement } of rows) say(`| ${client.name} | ${client.version} | ${cellsOf(judgement)} |`)
  const unknown = Object.keys(baseline).filter((name) => !PROTOCOL_CLIENTS.some((client) => client.name === name))
  for (const name of unknown) say(`UNKNOWN ${name}: no client has this name. Remove it from the baseline.`)
  const isMissing = rows.some(({ judgement }) => judgement === undefined)
  const isGood = rows.every(({ judgement }) => judgement === undefined || judgement.faults.length === 0)
  if (!isGood || unknown.length > 0 || (isMissing && !flags['without-missing'])) process.exitCode = 1
  say(`\n${seconds()} ${process.exitCode === 1 ? 'FAILED' : 'All clients that can be tested here work.'}`)
}

function cellsOf(judgement: Judgement | undefined): string {
  if (judgement === undefined) return 'MISSING |'
  const { passed, known, faults } = judgement
  return `${passed}${faults.length > 0 ? `, ${faults.length} FAILED` : ''} | ${known}`
}

function seconds(): string {
  return `${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s`
}
