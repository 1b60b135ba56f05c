/**
 * `npm run check:mcp`: runs the client scenarios of the conformance tests of the Model Context Protocol against a real
 * server. test/mcp/conformance-baseline.json has the accepted failures with their reasons; the check fails if another
 * scenario fails, or if a listed one passes. Names of scenarios limit it to these, and show their output.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { mapBounded } from '../src/lib/map-bounded.ts'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'
import { KEY, startServer } from '../test/support/server.ts'
import { useOwnTemporary } from './own-temporary.ts'

/** The machines of CI have so many cores. */
const CONCURRENCY = 2
const SCENARIO_MS = 30_000

const ROOT = join(import.meta.dirname, '..')
const PROGRAM = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const CLIENT = join(ROOT, 'scripts/mcp/conformance-client.ts')
const Baseline = z.record(z.string(), z.string().min(1))
const Checks = z.array(z.object({ id: z.string(), status: z.string(), description: z.string().optional() }))

type Outcome = { readonly scenario: string; readonly faults: readonly string[]; readonly output: string }

const run = promisify(execFile)
const say = (text: string) => process.stdout.write(`${text}\n`)

useOwnTemporary()
const baseline = Baseline.parse(JSON.parse(readFileSync(join(ROOT, 'test/mcp/conformance-baseline.json'), 'utf8')))
const only = process.argv.slice(2)
const scenarios = only.length > 0 ? only : await listScenarios()

await using stack = new AsyncDisposableStack()
const work = mkdtempSync(join(tmpdir(), 'check-mcp-'))
stack.defer(() => rmSync(work, { recursive: true, force: true }))
const model = await startScriptedModel({
  replies: [
    ...['test-tool', 'test_client_elicitation_defaults', 'test_reconnection'].map((tool) => reply(tool, {})),
    reply('add_numbers', { a: 5, b: 3 }),
    { turns: [{ text: 'Done.' }] },
  ],
})
stack.defer(() => model.close())
const server = stack.use(await startServer({ env: { OPENHANDS_MCP_ALLOW: '127.0.0.1,localhost,::1' } }))
finish(await mapBounded(scenarios, CONCURRENCY, check))

function reply(tool: string, args: Record<string, unknown>) {
  return {
    when: tool,
    turns: [{ calls: [{ name: `mcp__test__${tool}`, arguments: args }] }, { text: 'Done.' }],
  }
}

async function listScenarios(): Promise<string[]> {
  const { stdout } = await run(process.execPath, [PROGRAM, 'list', '--client'])
  return [...stdout.matchAll(/^ {2}- (\S+)/gm)].flatMap(([, name]) => name ?? [])
}

async function check(scenario: string): Promise<Outcome> {
  const out = join(work, scenario.replaceAll('/', '_'))
  const args = ['client', '--command', `"${process.execPath}" "${CLIENT}"`, '--scenario', scenario]
  const env = { ...process.env, AGENT_SERVER_URL: server.url, AGENT_SERVER_KEY: KEY, MODEL_URL: model.baseUrl }
  const { stdout, stderr } = await run(
    process.execPath,
    [PROGRAM, ...args, '--timeout', String(SCENARIO_MS), '-o', out],
    { env },
  ).catch((error: { stdout: string; stderr: string }) => error)
  return { scenario, faults: faultsIn(out), output: `${stdout}\n${stderr}` }
}

/** Reads the file that the program writes: it has one entry for each check. */
function faultsIn(directory: string): string[] {
  const file = readdirSync(directory, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith('checks.json'),
  )
  if (file === undefined) return ['it wrote no result']
  const checks = Checks.parse(JSON.parse(readFileSync(join(directory, file), 'utf8')))
  if (checks.length === 0) return ['nothing was checked']
  return checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ id, status, description }) => `${status} ${id}: ${description ?? ''}`)
}

function finish(outcomes: readonly Outcome[]): void {
  let isGood = true
  for (const { scenario, faults, output } of outcomes) {
    const reason = baseline[scenario]
    const isExpected = faults.length > 0 === (reason !== undefined)
    isGood &&= isExpected
    if (faults.length === 0) say(isExpected ? `ok ${scenario}` : `PASSES ${scenario}: remove it from the baseline.`)
    else say(isExpected ? `accepted ${scenario}: ${reason}` : `FAILS ${scenario}\n  ${faults.join('\n  ')}`)
    if (only.length > 0) say(output)
  }
  const unknown = Object.keys(baseline).filter((name) => only.length === 0 && !scenarios.includes(name))
  for (const name of unknown) say(`UNKNOWN ${name}: no scenario has this name. Remove it from the baseline.`)
  process.exitCode = isGood && unknown.length === 0 ? 0 : 1
}
