import { beforeAll, expect, test } from 'vitest'
import { createLogger } from '../../src/telemetry/logger.ts'
import { loadPrettyLines } from '../../src/telemetry/pretty-lines.ts'

let render: (line: string) => string
beforeAll(async () => void (render = await loadPrettyLines({ color: false })))

const shown = (fields: object) =>
  render(`${JSON.stringify({ level: 'info', time: '2026-01-02T03:04:05Z', ...fields })}\n`)

test('a request is one short line', () => {
  const line = shown({
    msg: 'audit',
    req_id: 'r',
    method: 'POST',
    route: '/conversations',
    status: 201,
    ms: 3.2,
    key: 'ab',
  })
  expect(line).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: POST \/conversations 201 3.2 ms\n$/)
})

test('other lines keep what they say', () => {
  expect(shown({ level: 'warn', msg: 'something is odd', pids: [1] })).toMatch(
    /WARN: something is odd \{"pids":\[1\]\}\n$/,
  )
})

test('the addresses are left to the summary at start', () => {
  expect(shown({ msg: 'Server listening at http://127.0.0.1:8000' })).toBe('')
})

test('a line is redacted before it is made readable', () => {
  const seen: string[] = []
  const log = createLogger({
    level: 'CRITICAL',
    redact: (text) => text.replaceAll('s3cret', '***'),
    render: (line) => {
      seen.push(line)
      return ''
    },
  })
  log.fatal('the key is s3cret')
  expect(seen).toEqual([expect.stringContaining('the key is ***')])
})
