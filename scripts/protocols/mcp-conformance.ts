/** The conformance tests of the Model Context Protocol, in front of `/mcp`: what each revision requires of a server. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { startForwarder } from '../clients/forwarder.ts'
import type { CaseResult, ProgramPlace } from './run-program.ts'

const REVISIONS = ['2025-11-25', '2026-07-28']
const RUN_MS = 5 * 60_000
const Checks = z.array(z.object({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }))

/** Returns a case for each check of each scenario and revision. */
export async function runMcpConformance({ env, directory = '', work }: ProgramPlace): Promise<CaseResult[]> {
  // The tests have no option for a key.
  const authorization = `Bearer ${env['AGENT_SERVER_KEY'] ?? ''}`
  const withKey = (headers: IncomingHttpHeaders) => ({ ...headers, authorization })
  await using proxy = await startForwarder(env['AGENT_SERVER_URL'] ?? '', withKey)
  const program = join(directory, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const results: CaseResult[] = []
  for (const revision of REVISIONS) {
    const out = join(work, `mcp-${revision}`)
    mkdirSync(out)
    const args = ['server', '--url', `${proxy.url}/mcp`, '--requirements', revision, '-o', out]
    const { all } = await execa(process.execPath, [program, ...args], {
      env,
      cwd: work,
      all: true,
      stdin: 'ignore',
      reject: false,
      timeout: RUN_MS,
    })
    const found = readChecks(out, revision)
    results.push(...found)
    if (found.length === 0) results.push({ case: `${revision}: the tests run`, fault: all })
  }
  return results
}

/** Each scenario has a folder, whose name ends with the time. */
function readChecks(directory: string, revision: string): CaseResult[] {
  return readdirSync(directory).flatMap((name) => {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
    const checks = Checks.parse(JSON.parse(readFileSync(join(directory, name, 'checks.json'), 'utf8')))
    if (checks.length === 0) return [{ case: `${revision} ${scenario}`, fault: 'nothing was checked' }]
    return checks
      .filter(({ status }) => status !== 'INFO' && status !== 'SKIPPED')
      .map(({ id, status, errorMessage = status }) => ({
        case: id === scenario ? `${revision} ${scenario}` : `${revision} ${scenario} ${id}`,
        fault: status === 'SUCCESS' ? undefined : errorMessage,
      }))
  })
}
