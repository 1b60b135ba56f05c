/** `npm run check:spec`: the descriptions are what their formats ask for, and a client generated from them type-checks. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Parser } from '@asyncapi/parser'

const ROOT = join(import.meta.dirname, '..')
const CLIENT = join(ROOT, 'test/client')
const OPENAPI = join(ROOT, 'openapi/openapi.json')
const ASYNCAPI = join(ROOT, 'openapi/asyncapi.json')

/** Severities: errors and warnings. */
const FAULTS: ReadonlySet<number> = new Set([0, 1])

mkdirSync(join(CLIENT, 'generated'), { recursive: true })
run(join(ROOT, 'node_modules/.bin/redocly'), ['lint', OPENAPI, '--config', join(ROOT, 'redocly.yaml')])
await validateAsyncApi()
run(join(CLIENT, 'node_modules/.bin/openapi-typescript'), [OPENAPI, '-o', join(CLIENT, 'generated/api.ts')])
run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', CLIENT])

/** Hints are printed and do not fail the check. */
async function validateAsyncApi(): Promise<void> {
  const { document, diagnostics } = await new Parser().parse(readFileSync(ASYNCAPI, 'utf8'))
  for (const { severity, message, path } of diagnostics) {
    process.stderr.write(`asyncapi.json: ${FAULTS.has(severity) ? 'fault' : 'note'}: ${message} (${path.join('.')})\n`)
  }
  const channels = document?.channels().length ?? 0
  if (channels === 0 || diagnostics.some(({ severity }) => FAULTS.has(severity))) process.exit(1)
  process.stdout.write(`openapi/asyncapi.json: valid, ${channels} channels\n`)
}

/** Nothing asks the network for anything. */
function run(command: string, args: readonly string[]): void {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', env, cwd: ROOT })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}
