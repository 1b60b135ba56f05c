/**
 * Lets Schemathesis send thousands of requests made from the document, and compares its failures with the accepted ones in
 * `schemathesis/exceptions.json`. That list has a reason for each, and a test keeps it from growing.
 */
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { startForwarder } from './forwarder.ts'
import type { Environment } from './toolchains.ts'

const FOLDER = join(import.meta.dirname, 'schemathesis')
/** A run takes far less on a quiet machine. */
const RUN_MS = 12 * 60_000

/** The same in every run, so that a failure can be repeated. */
const SEED = '1'
/** Streams do not end, so a request for one would only time out. */
const STREAMS = ['streamEvents', 'streamFirehose']

const Entry = z.object({ operation: z.string(), check: z.string(), signature: z.string() })
const Recorded = z.object({ entries: z.array(Entry) })
type Entry = z.infer<typeof Entry>

const Exceptions = z.array(
  z.strictObject({
    check: z.string(),
    signature: z.string().describe('What Schemathesis tells failures of one check apart by, such as a status.'),
    operations: z.array(z.string()).min(1),
    reason: z.string(),
  }),
)

export const readExceptions = () => Exceptions.parse(JSON.parse(readFileSync(join(FOLDER, 'exceptions.json'), 'utf8')))

type Target = { readonly url: string; readonly key: string; readonly work: string }

/** True if there is no failure beyond the accepted ones. */
export async function runSchemathesis(
  env: Environment,
  { url, key, work }: Target,
  say: (text: string) => void,
): Promise<boolean> {
  const directory = join(work, 'schemathesis')
  mkdirSync(directory)
  cpSync(join(import.meta.dirname, '../../openapi/openapi.json'), join(directory, 'openapi.json'))
  await using forwarder = await startForwarder(url, withOtherAddresses())
  const { all: output } = await execa('schemathesis', argumentsFor(forwarder.url, key), {
    cwd: directory,
    env,
    stdin: 'ignore',
    all: true,
    reject: false,
    timeout: RUN_MS,
  })
  const failures = readFailures(join(directory, 'failures.json'))
  const summary = /^ {2}\d+ generated.*$/m.exec(output)?.[0].trim()
  if (failures === undefined || summary === undefined) {
    say(`Schemathesis did not finish:\n${output.slice(-4000)}`)
    return false
  }
  const isAccepted = acceptedBy(readExceptions())
  const unknown = failures.filter((failure) => !isAccepted(failure))
  say(`Schemathesis: ${summary}; ${failures.length - unknown.length} failures accepted, ${unknown.length} new`)
  for (const { operation, check, signature } of unknown) say(`  ${operation}: ${check} ${signature}`)
  if (unknown.length > 0) say(sectionsOf(output, unknown))
  return unknown.length === 0
}

const RUN = 'run openapi.json --checks all --phases examples,coverage,fuzzing,stateful --max-examples 5'
const RUNNER = `--seed ${SEED} --workers 2 --request-timeout 10 --continue-on-failure --no-shrink --no-color`
// The failures are only recorded. Which of them are accepted is decided here, with reasons.
const RECORD = '--baseline failures.json --baseline-update'

function argumentsFor(url: string, key: string): string[] {
  const config = ['--config-file', join(FOLDER, 'schemathesis.toml')]
  const target = ['--url', url, '--header', `Authorization: Bearer ${key}`]
  const excluded = STREAMS.flatMap((id) => ['--exclude-operation-id', id])
  return [...config, ...`${RUN} ${RUNNER} ${RECORD}`.split(' '), ...target, ...excluded]
}

function readFailures(file: string): Entry[] | undefined {
  try {
    return Recorded.parse(JSON.parse(readFileSync(file, 'utf8'))).entries
  } catch {
    return undefined // It was not written: the run was cut off, and its output says why.
  }
}

/** A signature may continue with details that differ from run to run. */
const acceptedBy = (exceptions: z.infer<typeof Exceptions>) => (failure: Entry) =>
  exceptions.some(
    ({ check, signature, operations }) =>
      check === failure.check && signature === failure.signature && operations.includes(failure.operation),
  )

/** Returns what the report says of these operations. */
function sectionsOf(output: string, failures: readonly Entry[]): string {
  const names = new Set(failures.map(({ operation }) => operation))
  const sections = output.split(/^_{3,} (?=[A-Z]+ \/)/m)
  return sections.filter((text) => names.has(text.slice(0, text.indexOf(' __')))).join('\n')
}

/** Each request comes from another address: many wrong keys from one address would be refused with 429. */
function withOtherAddresses() {
  let address = 0
  return (headers: IncomingHttpHeaders): OutgoingHttpHeaders => {
    address++
    return { ...headers, 'x-forwarded-for': `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}` }
  }
}
