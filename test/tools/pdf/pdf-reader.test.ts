import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { PdfReader } from '../../../src/tools/pdf/pdf-reader.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

const child = (name: string) => join(import.meta.dirname, 'children', name)
const never = new AbortController().signal

test('the process of a parser reaches no files, network, programs or secrets, and compiles no code', async () => {
  vi.stubEnv('OPENHANDS_MASTER_KEY', 'k'.repeat(32))
  onTestFinished(() => void vi.unstubAllEnvs())
  const answer = await new PdfReader({ program: child('reach.mjs') }).read(Buffer.from(''), undefined, never)
  const [page] = 'pages' in answer ? answer.pages : []
  expect(JSON.parse(page?.text ?? '')).toEqual({ succeeded: [], variables: [] })
})

test.each([
  ['takes too long', 'for (;;);', 'late'],
  ['writes without end', 'for (;;) require("fs").writeSync(1, "x".repeat(1e6))', 'crashed'],
  ['answers something else', 'console.log("{}")', 'crashed'],
  ['ends without an answer', 'process.exit(3)', 'crashed'],
  ['takes all memory', 'const all = []; for (;;) all.push(Buffer.alloc(1e8, 1))', 'crashed'],
])('a program that %s is ended, and the next one can run', async (_, code, refusal) => {
  const reader = new PdfReader({ program: child('run-input.cjs'), timeoutMs: refusal === 'late' ? 1000 : PATIENCE_MS })
  expect(await reader.read(Buffer.from(code), undefined, never)).toEqual({ refusal })
})

test('an abort ends the process, and a call that waits for its turn', async () => {
  const reader = new PdfReader({ program: child('run-input.cjs') })
  const abort = new AbortController()
  const reads = [1, 2, 3].map(() => reader.read(Buffer.from('for (;;);'), undefined, abort.signal))
  const ended = Promise.allSettled(reads)
  await expect.poll(() => running()).toBe(2)
  abort.abort()
  expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(running()).toBe(0)
})

/** Programs of this file that run now. */
function running(): number {
  const { stdout } = spawnSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line.includes('--allow-fs-read') && line.includes('run-input.cjs')).length
}
