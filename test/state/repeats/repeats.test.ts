/** What the fold counts as repeated, and how often is too often. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Habit } from '../../../src/agent/repeats/habits.ts'
import {
  HABITS,
  countsIn,
  UNCHANGED_ADVICE_AT,
  adviceFor,
  adviceOnTexts,
  stuckIn,
  unchangedIn,
} from '../../../src/agent/repeats/habits.ts'
import type { Repeats } from '../../../src/state/repeats/repeats.ts'
import { NO_REPEATS, WAIT_MS, repeatsAfter } from '../../../src/state/repeats/repeats.ts'
import type { EventDraft } from '../../../src/contract/events/event.ts'
import { answered, folded, decided, stored, toolResult, toolUse, userMessage } from '../../conversations/events.ts'

/** A call with its input and what came of it. */
type Made = {
  input?: unknown
  output?: unknown
  fails?: boolean
  says?: string
  why?: 'failed' | 'denied' | 'interrupted'
  exit?: number
  ms?: number
  /** Who denied it, unless a rule did. */
  by?: 'user' | 'mode'
  path?: string
}

let ids = 0

/** One answer with these calls, and their results. */
function turn(...calls: Made[]): EventDraft[] {
  const made = calls.map((one) => ({ ...one, id: `call-${ids++}` }))
  return [
    answered({ calls: made.map(({ id }) => id) }),
    ...made.map(({ id, input }) => toolUse(id, input)),
    ...made.flatMap((one) => [...(one.by ? [denial(one.id, one.by)] : []), resultOf(one)]),
  ]
}

function resultOf({
  id,
  output,
  fails = true,
  says = 'no',
  why = 'failed',
  exit,
  ms = 1,
  path,
}: Made & { id: string }): EventDraft {
  const truncated = path === undefined ? {} : { truncated: true, full_output_path: path }
  if (exit !== undefined) return { ...toolResult(id, { exit_code: exit, stdout: output ?? 'no' }), duration_ms: ms }
  const error = fails && { is_error: true, error_type: why, error_message: says }
  return { ...toolResult(id, output ?? (fails ? says : 'done')), duration_ms: ms, ...truncated, ...error }
}

const denial = (tool_use_id: string, answered_by: 'user' | 'mode'): EventDraft =>
  decided(tool_use_id, { behavior: 'deny', answered_by })

const times = <T>(count: number, make: (n: number) => T[]): T[] =>
  Array.from({ length: count }, (_, n) => make(n)).flat()
const repeatsOf = (drafts: readonly EventDraft[]) => folded(drafts).repeats
const countOf = (drafts: readonly EventDraft[], habit: Habit = 'same') => countsIn(repeatsOf(drafts))[habit]

/** After how many of these answers `find` finds something, and what; undefined if it finds nothing in `limit`. */
function firstOf<T>(
  make: (n: number) => readonly EventDraft[],
  find: (repeats: Repeats) => T | undefined,
  limit = 500,
): [T, number] | undefined {
  let state = folded([])
  for (let n = 0; n < limit; n++) {
    state = folded(make(n), state)
    const found = find(state.repeats)
    if (found) return [found, n + 1]
  }
  return undefined
}

/** Why the run ends. */
const endOf = (make: (n: number) => readonly EventDraft[]) => firstOf(make, stuckIn)

/** What the model is advised about first, if the calls succeed. */
const noticedIn = (make: (n: number) => readonly EventDraft[], limit?: number) => firstOf(make, isNoticed, limit)

const isNoticed = (repeats: Repeats): Habit | 'unchanged' | undefined =>
  stuckIn(repeats) ?? (unchangedIn(repeats) >= UNCHANGED_ADVICE_AT ? 'unchanged' : undefined)

const STUCK_AT = HABITS.same.stuckAt
const FAILED_AT = HABITS.failures.stuckAt
const LETTERS = 'ABCDEFGH'

describe('failing answers', () => {
  test.each<[string, EventDraft[], number]>([
    ['one call', times(5, () => turn({ input: { a: 1 } })), 5],
    ['several calls, together', times(3, () => turn({ input: 1 }, { input: 2 })), 3],
    ['many times the same call in one answer counts once', turn(...times(9, () => [{ input: 1 }])), 1],
    ['two answers that alternate', times(4, () => [...turn({ input: 1 }), ...turn({ input: 2 })]), 1],
    ['a command with another exit code than 0', times(4, () => turn({ input: 1, exit: 1 })), 4],
    ['after other failures', [...turn({ input: 1 }), ...turn({ input: 2 }), ...times(3, () => turn({ input: 3 }))], 3],
    ['keys in another order', [...turn({ input: { a: 1, b: 2 } }), ...turn({ input: { b: 2, a: 1 } })], 2],
    ['calls in another order', [...turn({ input: 1 }, { input: 2 }), ...turn({ input: 2 }, { input: 1 })], 2],
  ])('are counted: %s', (_, drafts, count) => {
    expect(countOf(drafts)).toBe(count)
  })

  test('that are the same end the run', () => {
    expect(endOf(() => turn({ input: 1 }))).toEqual(['same', STUCK_AT])
  })

  const word = (n: number) => Array.from(String(n), (digit) => LETTERS[Number(digit) % 8]).join('')

  test.each<[string, (n: number) => Made[]]>([
    ['the same call with another result each time', (n) => [{ output: n, says: LETTERS[n % 7]! }]],
    ['two calls that alternate', (n) => [{ input: n % 2 }]],
    ['five calls in turn', (n) => [{ input: n % 5, says: LETTERS[n % 5]! }]],
    ['one of three calls in any order', (n) => [{ input: (n * 7 + Math.floor(n / 3) * 3) % 3 }]],
    ['other white space each time', (n) => [{ input: { command: `ls ${' '.repeat(n)}x` }, says: LETTERS[n % 7]! }]],
    ['the same error of other calls', (n) => [{ input: n }]],
    ['the same error of commands', (n) => [{ input: n, exit: n + 1, output: 'npm: not found' }]],
    ['several calls in each answer', (n) => [{ input: n }, { input: `${n} too` }]],
    ['what rules deny', (n) => [{ input: n, why: 'denied', says: 'Denied by the rule Bash(rm:*).' }]],
    ['what a function of the client denies', (n) => [{ input: n, why: 'denied', by: 'mode' }]],
    ['the same kind of error', (n) => [{ input: n, says: `No such file: /x/${LETTERS[n % 8]}/${n}` }]],
    ['other calls with other errors', (n) => [{ input: n, says: `${word(n)} ${word(n * 13)}` }]],
  ])('end the run later with %s', (_, make) => {
    expect(endOf((n) => turn(...make(n)))).toEqual(['failures', FAILED_AT])
  })

  test.each<[string, EventDraft[]]>([
    ['a call that succeeds', turn({ fails: false })],
    ['a call that succeeds beside one that fails', turn({ input: 1 }, { fails: false })],
    ['a command that exits with 0', turn({ exit: 0 })],
    ['what the user denied', turn({ why: 'denied', by: 'user' })],
    ['what was interrupted', turn({ why: 'interrupted' })],
    ['an answer without calls', [answered({ text: 'I give up.' })]],
    ['a message of the user', [userMessage('try this')]],
  ])('are counted until %s', (_, drafts) => {
    expect(countOf([...times(5, () => turn({ input: 1 })), ...drafts])).toBe(0)
  })

  test('are reported to the model once the pattern is complete, and not if the run ends anyway', () => {
    const advised = Array.from({ length: STUCK_AT }, (_, n) => {
      const before = folded(times(n, () => turn({ input: 1 })))
      const [answer, use, result] = turn({ input: 1 })
      const open = folded([answer!, use!], before)
      return adviceFor(open.repeats, stored(result!, open.lastSeq + 1) as never, open.openCalls) !== undefined
    })
    expect(advised).toEqual([false, false, false, true, true, false])
  })

  test('leave a few hashes, however long they continue', () => {
    const repeats = repeatsOf(times(300, (n) => turn({ input: 'x'.repeat(1000 + (n % 7)) })))
    expect(JSON.stringify(repeats).length).toBeLessThan(1000)
    expect(repeatsAfter(repeats, stored(userMessage('stop'), 1), [])).toEqual(NO_REPEATS)
  })
})

describe('a run does not end', () => {
  /** Longer than work that finds its way. */
  const often = 12
  test.each<[string, EventDraft[]]>([
    ['after other errors each time', times(often, (n) => turn({ input: n, output: n, says: `no ${n}` }))],
    ['after searches that find nothing', times(often, (n) => turn({ input: n, exit: 1, output: '' }))],
    ['after two errors in turn', times(often, (n) => turn({ input: n, says: `no ${n % 2}` }))],
    ['after two errors in each answer', times(often, (n) => turn({ input: n }, { input: `${n} too`, says: 'other' }))],
    [
      'with a success between failures',
      times(4 * often, (n) => [...turn({ input: n }), ...(n % often === 6 ? turn({ fails: false }) : [])]),
    ],
    ['after what the user denied', times(4 * often, (n) => turn({ input: n, why: 'denied', by: 'user' }))],
  ])('%s', (_, drafts) => {
    expect(stuckIn(repeatsOf(drafts))).toBeUndefined()
  })
})

describe('calls that succeed', () => {
  const adviceAt = UNCHANGED_ADVICE_AT
  const ok = { fails: false }

  test.each<[string, (n: number) => Made[]]>([
    ['one call', () => [{ ...ok, input: { file_path: 'a' }, output: 'text' }]],
    ['one call without arguments', () => [{ ...ok, input: {}, output: '' }]],
    ['five in turn', (n) => [{ ...ok, input: n % 5 }]],
    ['one of five in any order', (n) => [{ ...ok, input: (n * n) % 5 }]],
    [
      'several together, in another order each time',
      (n) => [
        { ...ok, input: n % 2 },
        { ...ok, input: (n + 1) % 2 },
      ],
    ],
    ['one that succeeds and one that fails', () => [{ ...ok, input: 1 }, { input: 2 }]],
    ['successes and failures in turn', (n) => [{ input: n % 2, fails: n % 2 === 0 }]],
    ['huge outputs', () => [{ ...ok, output: 'x'.repeat(100_000) }]],
    [
      'outputs that were shortened',
      (n) => [
        {
          ...ok,
          output: `a […]
/o/stdout-${uuid(n)}.txt`,
          path: `/o/stdout-${uuid(n)}.txt`,
        },
      ],
    ],
    [
      'the same program in the background',
      (n) => [{ ...ok, output: { exit_code: 0, stdout: '', background_pid: 4000 + n } }],
    ],
    ['what the user denies', () => [{ why: 'denied', by: 'user' }]],
    ['what is interrupted', () => [{ why: 'interrupted' }]],
  ])('without any change are noticed much later: %s', (_, make) => {
    const [habit, after] = noticedIn((n) => turn(...make(n))) ?? []
    expect(habit).toBe('unchanged')
    // Each of up to five has to be seen once before it repeats.
    expect(after).toBeGreaterThanOrEqual(adviceAt)
    expect(after).toBeLessThanOrEqual(adviceAt + 10)
  })

  test('without any change are advised against now and then, and do not end the run', () => {
    const at = (count: number) => {
      const before = folded(times(count - 1, () => turn({ ...ok, input: 1 })))
      const [answer, use, result] = turn({ ...ok, input: 1 })
      const open = folded([answer!, use!], before)
      return adviceFor(open.repeats, stored(result!, open.lastSeq + 1) as never, open.openCalls)
    }
    const advised = Array.from({ length: 5 * adviceAt }, (_, n) => n).filter((n) => at(n) !== undefined)
    expect(advised).toEqual([adviceAt, 2 * adviceAt, 4 * adviceAt])
    expect(at(adviceAt)).toMatch(/make one call that waits longer\.$/)
    expect(stuckIn(folded(times(500, () => turn({ ...ok, input: 1 }))).repeats)).toBeUndefined()
  })

  test.each<[string, (n: number) => Made[] | 'text']>([
    ['a call that waits', () => [{ ...ok, input: 'sleep 5; curl status', ms: 5000 }]],
    ['a wait between the calls', (n) => [n % 2 ? { ...ok, input: 'sleep 5', ms: WAIT_MS } : { ...ok, input: 'curl' }]],
    [
      'several calls that wait together',
      () => [
        { ...ok, ms: WAIT_MS / 2 },
        { ...ok, ms: WAIT_MS / 2 },
      ],
    ],
    ['results that change', (n) => [{ ...ok, output: `${n} %` }]],
    [
      'a result that changes in the middle of a long output',
      (n) => [{ ...ok, output: `${'x'.repeat(9e3)}${1000 + n}${'y'.repeat(9e3)}` }],
    ],
    ['a result that changes now and then', (n) => [{ ...ok, output: `${Math.floor(n / 4)} %` }]],
    ['six in turn', (n) => [{ ...ok, input: n % 6 }]],
    ['the same result of another call each time', (n) => [{ ...ok, input: n }]],
    ['a new call now and then', (n) => [{ ...ok, input: n % 9 === 0 ? n : 'npm test' }]],
    [
      'a long input that changes in the middle',
      (n) => [{ ...ok, input: `${'x'.repeat(99)}${1000 + n}${'y'.repeat(99)}` }],
    ],
  ])('are legitimate with %s', (_, make) => {
    expect(noticedIn((n) => turn(...(make(n) as Made[])))).toBeUndefined()
  })

  test('are hashed only when the same calls are made again and again', () => {
    const working = repeatsOf(times(100, (n) => turn({ ...ok, input: { n } })))
    expect(Object.keys(working).filter((key) => working[key as keyof typeof working] !== undefined)).toEqual(['calls'])
    expect(JSON.stringify(working).length).toBeLessThan(120)
  })
})

test('work in which something is new now and then never ends', () => {
  const made = fc.record({
    input: fc.nat(30),
    output: fc.nat(3),
    fails: fc.boolean(),
    exit: fc.nat(1),
    ms: fc.constantFrom(1, 300, 2000),
  })
  const work = fc.array(fc.array(made, { minLength: 1, maxLength: 3 }), { minLength: 100, maxLength: 200 })
  fc.assert(
    fc.property(work, (answers) => {
      // A new call that succeeds, often enough.
      const make = (n: number) => turn(...(n % 5 === 0 ? [{ input: `new ${n}`, fails: false }] : answers[n]!))
      expect(noticedIn(make, answers.length)).toBeUndefined()
    }),
    { numRuns: 30 },
  )
})

test('the count is the same when it is stored and read in between', () => {
  const made = fc.record({ input: fc.nat(2), output: fc.nat(1), fails: fc.boolean(), ms: fc.constantFrom(1, 2000) })
  const work = fc.array(fc.array(made, { minLength: 1, maxLength: 3 }), { minLength: 20, maxLength: 40 })
  fc.assert(
    fc.property(work, fc.nat(5), (answers, every) => {
      const drafts = answers.flatMap((calls) => turn(...calls))
      const through = drafts.reduce((state, draft, at) => {
        const next = folded([draft], state)
        return at % (every + 1) === 0 ? { ...next, repeats: JSON.parse(JSON.stringify(next.repeats)) } : next
      }, folded([]))
      expect(through.repeats).toEqual(repeatsOf(drafts))
    }),
    { numRuns: 30 },
  )
})

test('polling with results that change never ends', () => {
  const polled = fc.array(fc.record({ at: fc.nat(4), stays: fc.integer({ min: 1, max: 9 }) }), {
    minLength: 60,
    maxLength: 90,
  })
  fc.assert(
    fc.property(polled, (polls) => {
      let n = 0
      const answers = polls.flatMap(({ at, stays }, poll) =>
        Array.from({ length: stays }, () => ({ input: `curl ${(n++ % (at + 1)) + 1}`, output: poll, fails: false })),
      )
      expect(noticedIn((each) => turn(answers[each]!), answers.length)).toBeUndefined()
    }),
    { numRuns: 30 },
  )
})

describe('answers without a call', () => {
  const texts = (count: number, stop_reason = 'stop') =>
    times(count, () => [{ ...answered({ text: 'Nearly.' }), stop_reason }])
  const counted = (drafts: readonly EventDraft[]) => countOf(drafts, 'texts')

  test('are counted in a row, until a call, a message or another run', () => {
    expect(counted(texts(5))).toBe(5)
    expect(counted([...texts(5), ...turn({ fails: false })])).toBe(0)
    expect(counted([...texts(5), userMessage('go on')])).toBe(0)
    expect(counted(texts(5, 'pause_turn')), 'that the provider only paused').toBe(5)
  })

  test('are advised against before the run ends', () => {
    const advised = Array.from({ length: STUCK_AT }, (_, n) => adviceOnTexts(repeatsOf(texts(n + 1))) !== undefined)
    expect(advised).toEqual([false, false, false, true, true, false])
    expect(stuckIn(repeatsOf(texts(STUCK_AT)))).toBe('texts')
  })
})

const uuid = (n: number) => `018f0000-0000-7000-8000-${String(n).padStart(12, '0')}`
