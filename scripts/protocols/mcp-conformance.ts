/** The conformance tests of the Model Context Protocol: what each revision requires of a server. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { startForwarder } from '../clients/forwarder.ts'
import { startFixtureServer } from './mcp-fixtures/fixture-server.ts'
import type { CaseResult, ProgramPlace } from './run-program.ts'

const REVISIONS = ['2025-11-25', '2026-07-28']
const RUN_MS = 5 * 60_000
const Checks = z.array(z.object({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }))

/** What the server with agents must pass, too: these scenarios ask for no special tools. */
const OF_AGENTS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection', 'http-header-validation']

/** Returns a case for each check of each scenario and revision, of the handler with fixtures and of that with agents. */
export async function runMcpConformance({ env, directory = '', work }: ProgramPlace): Promise<CaseResult[]> {
  // The tests have no option for a key.
  const authorization = `Bearer ${env['AGENT_SERVER_KEY'] ?? ''}`
  const withKey = (headers: IncomingHttpHeaders) => ({ ...headers, authorization })
  await using agents = await startForwarder(env['AGENT_SERVER_URL'] ?? '', withKey)
  await using fixtures = await startFixtureServer()
  const program = join(directory, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const results: CaseResult[] = []
  const run = async (name: string, url: string, ...which: string[]) => {
    const out = join(work, name.replaceAll(' ', '-'))
    mkdirSync(out)
    const { all } = await execa(process.execPath, [program, 'server', '--url', `${url}/mcp`, '-o', out, ...which], {
      env,
      cwd: work,
      all: true,
      stdin: 'ignore',
      reject: false,
      timeout: RUN_MS,
    })
    const found = readChecks(out, name)
    results.push(...found)
    if (found.length === 0) results.push({ case: `${name}: the tests run`, fault: all })
  }
  for (const revision of REVISIONS) await run(revision, fixtures.url, '--requirements', revision)
  for (const scenario of OF_AGENTS) await run(`agents ${scenario}`, agents.url, '--scenario', scenario)
  return results
}

/** Each scenario has a folder, whose name ends with the time. */
function readChecks(directory: string, run: string): CaseResult[] {
  return readdirSync(directory).flatMap((name) => {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
    const checks = Checks.parse(JSON.parse(readFileSync(join(directory, name, 'checks.json'), 'utf8')))
    if (checks.length === 0) return [{ case: `${run} ${scenario}`, fault: 'nothing was checked' }]
    return checks
      .filter(({ status }) => status !== 'INFO' && status !== 'SKIPPED')
      .map(({ id, status, errorMessage = status }) => ({
        case: id === scenario ? `${run} ${scenario}` : `${run} ${scenario} ${id}`,
        fault: status === 'SUCCESS' ? undefined : errorMessage,
      }))
  })
}
