import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PdfReader } from '../../../src/tools/pdf/pdf-reader.ts'

const child = (name: string) => join(import.meta.dirname, 'children', name)
const never = new AbortController().signal

test('the process of a parser reaches no files, network, programs or secrets, and compiles no code', async () => {
  process.env['OPENHANDS_MASTER_KEY'] = 'k'.repeat(32)
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
  const reader = new PdfReader({ program: child('run-input.cjs'), timeoutMs: refusal === 'late' ? 1000 : 20_000 })
  expect(await reader.read(Buffer.from(code), undefined, never)).toEqual({ refusal })
})
