import { expect, test } from 'vitest'
import { readReports, REPORT, STATE, STATE_END } from '../../src/shell/bash-report.ts'

const TOKEN = 'token-of-these-tests'

function read(...fields: string[]): unknown[] {
  const seen: unknown[] = []
  const take = readReports({
    isExpected: (token) => token === TOKEN,
    onReport: ({ exitCode, cwd }) => seen.push([exitCode, cwd]),
    onState: (state) => seen.push(state.toString()),
  })
  take(Buffer.from(fields.join('\0')))
  return seen
}

const report = (exitCode: number, token = TOKEN) => ['', REPORT + token, `${exitCode}`, '/w', '', '', '']
const state = (text: string, token = TOKEN) => [STATE + token, text, STATE_END + token]

test('a report and the state after it are read', () => {
  expect(read(...report(1), ...state('a'), ...report(2), ...state('b'), '')).toEqual([[1, '/w'], 'a', [2, '/w'], 'b'])
})

test.each([
  ['in the report', report(1).slice(0, 4)],
  ['by a report that nobody asked for', report(1, 'made-up')],
  ['by a state that nobody asked for', [...report(1), ...state('half a st', 'made-up')]],
  ['before the state', report(1)],
  ['in the state', [...report(1), STATE, 'half a st']],
  ['after the state', [...report(1), STATE, 'whole']],
])('what was cut short %s spoils nothing of what follows', (_, cut) => {
  const seen = read(...cut, ...report(2), ...state('b'), '')
  expect(seen.slice(-2)).toEqual([[2, '/w'], 'b'])
  expect(seen).not.toContain('half a st')
})
