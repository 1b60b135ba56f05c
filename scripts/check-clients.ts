/**
 * `npm run check:clients`: generates clients from openapi/openapi.json, compiles the programs of examples/clients.md and runs
 * them against a real server, runs the typed client in Deno, Bun and Node 22, and lets Schemathesis compare the server with the
 * document. It builds the Python SDK and tests its wheel. With `--write` it puts the table of
 * results on the page; otherwise it fails when the page says something else. Names of toolchains, `schemathesis` and `python-sdk` limit it to these.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { mapBounded } from '../src/lib/map-bounded.ts'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'
import { KEY, startServer } from '../test/support/server.ts'
import type { ClientCheck, Outcome } from './clients/client-checks.ts'
import { CLIENT_CHECKS, checkClient } from './clients/client-checks.ts'
import { readRows, writeTable } from './clients/page.ts'
import { followInRuntimes } from './clients/follow-in-runtimes.ts'
import { followOverRestarts } from './clients/follow-over-restarts.ts'
import { runSchemathesis } from './clients/schemathesis.ts'
import { checkPythonSdk } from './clients/python-sdk.ts'
import type { Toolchain, ToolchainName } from './clients/toolchains.ts'
import { provideToolchain } from './clients/toolchains.ts'
import { useOwnTemporary } from './own-temporary.ts'

/** The machines of CI have so many cores. */
const CONCURRENCY = 2

useOwnTemporary()
const { values: flags, positionals: only } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean' } },
})
const started = performance.now()
const say = (text: string) => process.stdout.write(`${text}\n`)
const isWanted = (name: string) => only.length === 0 || only.includes(name)

await using stack = new AsyncDisposableStack()
const work = mkdtempSync(join(tmpdir(), 'check-clients-'))
stack.defer(() => rmSync(work, { recursive: true, force: true }))

const checks = CLIENT_CHECKS.filter(({ toolchain }) => isWanted(toolchain))
const names = new Set(checks.map(({ toolchain }) => toolchain))
if (isWanted('schemathesis')) names.add('python')
if (isWanted('python-sdk')) names.add('python').add('npm')
if (isWanted('runtimes')) names.add('runtimes')
const toolchains = new Map(await Promise.all([...names].map(async (name) => [name, await provide(name)] as const)))
say(`${seconds()} the toolchains are there`)

const settings = await startEverything()
const rows = await mapBounded(checks, CONCURRENCY, checkOne)
const python = toolchains.get('python')
const report = (text: string) => say(`${seconds()} ${text}`)
const runtimes = toolchains.get('runtimes')
const isPortable =
  runtimes === undefined || 'missing' in runtimes
    ? true
    : await followInRuntimes(runtimes.directory, work, settings, report)
const isLasting =
  python === undefined || 'missing' in python || !isWanted('python')
    ? true
    : await followOverRestarts(python.env, work, report)
const npm = toolchains.get('npm')
// Neither can use two cores, and each has its own server.
const [isFaithful, isSdkRight] =
  python === undefined || 'missing' in python
    ? [true, true]
    : await Promise.all([
        !isWanted('schemathesis') ||
          runSchemathesis(python.env, { url: settings['AGENT_SERVER_URL'] ?? '', key: KEY, work }, report),
        !isWanted('python-sdk') ||
          checkPythonSdk(python.env, npm && 'directory' in npm ? npm.directory : undefined, work, report),
      ])
finish(rows)

async function provide(name: ToolchainName): Promise<Toolchain> {
  const toolchain = await provideToolchain(name)
  if ('missing' in toolchain) say(`MISSING ${name}: not found: ${toolchain.missing}. Its clients are not tested.`)
  return toolchain
}

type Row = { readonly check: ClientCheck; readonly outcome: Outcome | undefined }

async function checkOne(check: ClientCheck): Promise<Row> {
  const toolchain = toolchains.get(check.toolchain)
  if (toolchain === undefined || 'missing' in toolchain) return { check, outcome: undefined }
  const outcome = await checkClient(check, toolchain, join(work, String(CLIENT_CHECKS.indexOf(check))), settings)
  say(`${seconds()} ${check.heading}: ${outcome.works ? 'works' : 'FAILED'}`)
  if (outcome.fault !== undefined) say(outcome.fault)
  return { check, outcome }
}

/** A server with a scripted model, and a receiver of callbacks. Returns the variables of the programs. */
async function startEverything(): Promise<Record<string, string>> {
  const calls = [{ name: 'Bash', arguments: { command: 'echo $((6*7))' } }]
  const model = stack.use(await startScriptedModel([{ calls }, { text: 'It is 42.' }]))
  const env = {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'none-needed',
    OPENHANDS_CALLBACK_ALLOW: '127.0.0.1',
    // The forwarder in front of Schemathesis.
    OPENHANDS_TRUST_PROXY: '127.0.0.1',
  }
  const server = stack.use(await startServer({ env }))
  const receiver = stack.use(createServer((request, response) => void request.resume().on('end', () => response.end())))
  await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo // it listens on TCP
  return {
    AGENT_SERVER_URL: server.url,
    AGENT_SERVER_KEY: KEY,
    CALLBACK_URL: `http://127.0.0.1:${port}/`,
  }
}

function finish(all: readonly Row[]): void {
  const known = readRows()
  const lines = all.map(({ check, outcome }) => {
    // A client whose toolchain is missing is unchanged since its last test.
    const before = known.find((line) => line.startsWith(linkTo(check)))
    return outcome ? lineOf(check, outcome) : (before ?? `${linkTo(check)} | ${check.generator} | | | |`)
  })
  const head = ['| client | generator | generates | compiles | works |', '|---|---|---|---|---|']
  say(['', ...head, ...lines, ''].join('\n'))
  const isPageTrue = only.length > 0 || lines.join('\n') === known.join('\n')
  if (flags.write && only.length === 0) writeTable([...head, ...lines].join('\n'))
  else if (!isPageTrue) say('examples/clients.md has another table. Run: node scripts/check-clients.ts --write')
  const failed = all.filter(({ outcome }) => outcome && !outcome.works)
  if (failed.length > 0 || !isLasting || !isPortable || !isFaithful || !isSdkRight || (!isPageTrue && !flags.write))
    process.exitCode = 1
  say(`${seconds()} ${process.exitCode === 1 ? 'FAILED' : 'All clients that can be tested here work.'}`)
}

function lineOf(check: ClientCheck, { generates, compiles, works }: Outcome): string {
  const cells = [generates, compiles, works].map((holds) => (holds ? 'yes' : 'no'))
  return `${linkTo(check)} | ${check.generator} | ${cells.join(' | ')} |`
}

function linkTo({ heading }: ClientCheck): string {
  return `| [${heading}](#${heading.toLowerCase().replaceAll(' ', '-')})`
}

function seconds(): string {
  return `${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s`
}
