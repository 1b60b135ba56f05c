/** How long the worst inputs of about 10 MB hold the event loop at a time: what all other clients then wait for. */
import { setImmediate } from 'node:timers/promises'
import { validateOutput } from '../src/agent/output/output-schema.ts'
import { parseUntrustedJson } from '../src/lib/json/untrusted-json.ts'
import { MAX_DEPTH, MAX_NAMES, MAX_VALUES } from '../src/mcp/transports/json-gauge.ts'
import { readFrontmatter } from '../src/project/frontmatter.ts'
import { createRedactor } from '../src/security/redaction/redactor.ts'
import { parsePatch } from '../src/tools/patch/parse-patch.ts'
import { patchText } from '../src/tools/patch/patch-text.ts'
import type { Row } from './table.ts'

const MEGABYTE = 1_000_000

/** The goal for each of them. */
const GOAL_MS = 100

/** Each makes its input, and returns the work that is measured. */
const INPUTS: Readonly<Record<string, () => () => unknown>> = {
  'an output schema whose pattern backtracks forever': () => () =>
    validateOutput({ pattern: '^(a+)+$' }, `"${'a'.repeat(60)}b"`),
  'redacting 9 MB that consist of a secret': () => {
    const redactor = createRedactor()
    redactor.set('TOKEN', 'topsecret')
    const text = 'topsecret'.repeat(MEGABYTE)
    return () => redactor.redactInSlices(text)
  },
  'a patch of a file with 1.5 million lines': () => {
    const [part] = parsePatch('*** Begin Patch\n*** Update File: a\n@@\n-the last\n+another\n*** End Patch')
    const hunks = part?.kind === 'update' ? part.hunks : []
    const text = `${'some\n'.repeat(1.5 * MEGABYTE)}the last\n`
    return () => patchText('a', text, hunks, new AbortController().signal)
  },
  'parsing an MCP message with as many names as are accepted': () => {
    const names = Array.from({ length: MAX_NAMES }, (_, at) => `"${'name'.repeat(50)}${at}":1`)
    const message = `{${names.join(',')}}`
    return () => parseUntrustedJson(message, { depth: MAX_DEPTH, values: MAX_VALUES, names: MAX_NAMES })
  },
  'a frontmatter of 8 KiB that is not YAML': () => () => readFrontmatter(`---\n${'a: b: c\n'.repeat(1000)}---\n`),
}

export async function benchEventLoop(): Promise<Row[]> {
  const rows: Row[] = []
  for (const [what, prepare] of Object.entries(INPUTS)) {
    // The first run also loads and compiles the code.
    await prepare()()
    const ms = await longestBlock(prepare())
    rows.push([`longest block of the event loop: ${what}`, `${ms.toFixed(0)} ms`, `goal: ${GOAL_MS} ms`])
  }
  return rows
}

async function longestBlock(work: () => unknown): Promise<number> {
  await setImmediate()
  let [last, longest, isOver] = [performance.now(), 0, false]
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) globalThis.setImmediate(look)
  }
  globalThis.setImmediate(look)
  await work()
  isOver = true
  look()
  return longest
}
