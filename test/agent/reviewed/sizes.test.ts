/**
 * How much a compaction keeps, and what counts as a repetition, as it was reviewed. Write the files again with
 * `vitest run -u test/agent/reviewed`, and review each line that differs.
 */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ContextSize, tokensOfMessage, tokensOfText, tokensOfTools } from '../../../src/agent/history/context-size.ts'
import type { ListedMessage } from '../../../src/agent/history/message-list.ts'
import { condenseMessages, MessageList } from '../../../src/agent/history/message-list.ts'
import { maxSummaryChars, planCompaction, tokensAfter } from '../../../src/agent/compaction/plan.ts'
import type { PlanInput } from '../../../src/agent/compaction/plan.ts'
import { shortenMessage, shortenResult } from '../../../src/agent/history/shorten.ts'
import { partsOfText } from '../../../src/agent/compaction/transcript.ts'
import { hashOfAnswer, hashOfResult, printOf } from '../../../src/state/repeats/fingerprints.ts'
import { streakAfter } from '../../../src/state/repeats/repeats.ts'
import { HABITS } from '../../../src/agent/repeats/habits.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'
import { createRandom } from '../../support/random.ts'

const expectReviewed = (values: readonly unknown[], name: string): Promise<void> =>
  expect(`${values.map((value) => JSON.stringify(value)).join('\n')}\n`).toMatchFileSnapshot(
    join(import.meta.dirname, `${name}.txt`),
  )

const IMAGE = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
/** Each part of it is different, so that a cut at another place gives another text. */
const text = (length: number) => {
  let all = ''
  for (let at = 0; all.length < length; at++) all += `${at} `
  return all.slice(0, length)
}
const user = (words: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text: words }] })
const says = (words: string, ...args: string[]): ModelMessage => ({
  role: 'assistant',
  text: words,
  toolCalls: args.map((each, at) => ({ id: `c${at}`, name: 'Tool', arguments: each })),
})
const gets = (content: string): ModelMessage => ({ role: 'tool', toolCallId: 'c0', content })
/** Lengths are kept, and long texts are not. */
const shown = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each: unknown) =>
    typeof each === 'string' && each.length > 120 ? `${each.slice(0, 30)}…${each.length}…${each.slice(-60)}` : each,
  )

test('a text is shortened when it is longer than allowed, and says what is missing', async () => {
  const lengths = [999, 1000, 1001, 1299, 1300, 1301, 5000]
  const places = [
    { eventId: 'e', path: undefined },
    { eventId: 'e', path: '/x' },
  ]
  const image: ModelMessage = {
    role: 'user',
    content: [{ type: 'text', text: 'a' }, IMAGE, { type: 'text', text: 'b' }],
  }
  await expectReviewed(
    [
      ...lengths.flatMap((length) =>
        places.map((place) =>
          shown(shortenResult({ role: 'tool', toolCallId: 'c', content: text(length) }, place, 1000)),
        ),
      ),
      shortenResult({ role: 'tool', toolCallId: 'c', content: 'a', images: [IMAGE] }, places[0]!, 1000),
      shortenResult(
        { role: 'tool', toolCallId: 'c', content: '😀'.repeat(900) },
        places[0]!,
        1001,
      ).content.isWellFormed(),
      ...lengths.map((length) => shown(shortenMessage(user(text(length)), 1000))),
      shortenMessage(image, undefined),
      shortenMessage(image, 1000),
      shown(shortenMessage(image, 4)),
      [43, 44, 45].map((length) => shown(shortenMessage(image, length))),
      shown(shortenMessage(gets(text(2000)), 1000)),
      shortenMessage(user('😀'.repeat(900)), 1001),
    ].map(shown),
    'shortened',
  )
})

test('a conversation as a text keeps its first part and the newest ones', async () => {
  const image: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'a' }, IMAGE] }
  const all = [
    image,
    says('thinks', text(1500)),
    { ...gets(text(5000)), isError: true } as const,
    says(''),
    gets('b'),
    user('c'),
  ]
  const sizes = [0, 1, 10, 49, 50, 51, 100, 200, 1000, 4100, 5000, 5300, 6000, 100_000]
  await expectReviewed(
    [
      partsOfText([], 100),
      ...sizes.map((size) => [size, shown(partsOfText(all, size))]),
      ...[100, 1000, 10_000].map((size) => [size, shown(partsOfText([user(text(4000)), gets(text(9000))], size))]),
      ...[9, 10, 11].map((size) => [size, partsOfText([user('1'), user('2'), user('3')], 3 * size)]),
    ],
    'transcripts',
  )
})

test('tokens are estimated, and corrected by what the model reported', async () => {
  const image: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'abcde' }, IMAGE, IMAGE] }
  const tools = [{ name: 'T', description: 'D', inputSchema: {} }]
  const messages = [user(text(400)), says(text(100), text(40), text(20)), gets(text(2000)), says('done')]
  const usage = (input: number, output = 0, reasoning = 0) => ({
    input_tokens: input,
    output_tokens: output,
    cached_tokens: 0,
    reasoning_tokens: reasoning,
  })
  const fixed = () => 1000
  const sizes = [
    0, 50, 130, 131, 132, 133, 134, 135, 500, 600, 700, 3000, 100_000, 203_200, 203_300, 203_400, 210_000,
  ].map((input) => {
    const size = new ContextSize()
    size.measured(usage(input, 30, 10), messages, [])
    const first = size.of(messages, fixed)
    size.forget(messages, fixed)
    return [input, first, size.scaled(100), size.of(messages.slice(0, 2), fixed), size.of(messages, fixed)]
  })
  const removed = [0, 1, 3].map((at) => {
    const size = new ContextSize()
    const before = size.of(messages, fixed)
    size.removed(messages[at]!, at)
    const left = messages.filter((_, index) => index !== at)
    const after = size.of(left, fixed)
    size.measured(usage(700, 5, 9), left, [user('late')])
    return [before, after, size.of(left, fixed), size.of([...left, user('more')], fixed)]
  })
  await expectReviewed(
    [
      ['', 'a', 'abcd', 'abcde', 'é'.repeat(4)].map(tokensOfText),
      [user('abcde'), image, says('abcde'), says('', '{}', 'abcde'), gets('abcde')].map(tokensOfMessage),
      [tokensOfTools([]), tokensOfTools(tools)],
      ...sizes,
      ...removed,
    ],
    'tokens',
  )
})

/** A conversation of some turns, of sizes that differ. */
function entriesOf(seed: number): ListedMessage[] {
  const random = createRandom(seed)
  const entries: ListedMessage[] = []
  for (let seq = 1; entries.length < 4 + random.below(12); seq += 1 + random.below(3)) {
    const size = random.pick([10, 100, 1000, 4000])
    const kind = random.pick(['user', 'user', 'turn', 'turn', 'turn', 'move', 'schema', 'images'] as const)
    if (kind === 'turn') {
      entries.push({ seq, kind: 'other', message: says('a', text(size / 10)) })
      const origin = { eventId: `e${seq}`, path: undefined }
      entries.push({ seq, kind: 'other', message: gets(text(size * 2)), ...(random.below(4) > 0 && { origin }) })
    } else if (kind === 'images') {
      entries.push({ seq, kind: 'other', message: { role: 'user', content: [IMAGE], repeatsImages: true } })
    } else {
      const runId = kind === 'schema' ? random.pick(['r1', 'r2']) : undefined
      entries.push({ seq, kind, message: user(text(size)), ...(runId && { runId }) })
    }
  }
  return entries
}

test('a plan shortens or forgets what is enough, and leads to the size that it said', async () => {
  const plans = Array.from({ length: 150 }, (_, seed) => {
    const entries = entriesOf(seed)
    const random = createRandom(seed + 1000)
    const scale = random.pick([1, 1, 2])
    const scaled = (tokens: number) => Math.ceil(tokens * scale)
    const size = entries.reduce((sum, { message }) => sum + scaled(tokensOfMessage(message)), 100)
    const input: PlanInput = {
      entries,
      forgottenThrough: random.pick([0, 0, 3, 100]),
      tokens: size,
      fixedTokens: 100,
      limit: Math.round(size * random.pick([0.3, 0.6, 0.9, 1, 2, 5])),
      scaled,
      forced: random.below(4) === 0,
      urgent: random.below(3) === 0,
      runId: random.pick([undefined, 'r1']),
    }
    const plan = planCompaction(input)
    const list = new MessageList()
    for (const entry of entries) list.push(entry)
    const left = plan ? condenseMessages(entries, input.forgottenThrough, { ...plan, summary: 's' }) : []
    if (plan) list.condense({ ...plan, summary: 's', tasks: 't' })
    return [
      seed,
      input.limit,
      plan ?? null,
      plan ? tokensAfter(plan, input, 'sum') : 0,
      left.length,
      list.forgottenThrough,
      list.messages.length,
    ]
  })
  const summaries = [0, 1000, 1666, 1667, 1668, 10_000, 39_999, 40_000, 40_001].map((limit) => [
    limit,
    maxSummaryChars(limit),
  ])
  await expectReviewed(
    [
      ...plans,
      planCompaction({
        entries: [],
        forgottenThrough: 0,
        tokens: 0,
        fixedTokens: 0,
        limit: 1,
        scaled: (n) => n,
        forced: true,
        urgent: true,
      }) ?? null,
      ...summaries,
    ],
    'plans',
  )
})

test('answers are compared by their calls and results, in the ways that were reviewed', async () => {
  const inputs: unknown[] = [
    {},
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    { a: 2, b: 1 },
    [],
    [1, 2],
    [2, 1],
    null,
    undefined,
    'x',
    1,
    true,
    { a: { b: ['c'] } },
    ...[63, 64, 65].map((length) => text(length)),
    `${text(40)}-${text(40)}`,
    `${text(40)}+${text(40)}`,
  ]
  const uuid = '01234567-89ab-cdef-0123-456789abcdef'
  const outputs: (readonly [output: unknown, truncated?: true])[] = [
    ['a'],
    [`a ${uuid}`],
    [`a ${uuid}`, true],
    [`a ${uuid.replace('0', 'f')}`, true],
    [{ background_pid: 12 }],
    [{ background_pid: 13 }],
    [{ background_id: 'a' }],
    [{ background_id: 'b' }],
    [{ background_id: 'b'.repeat(101) }],
  ]
  const call = { name: 'T', input: { a: 1 } }
  const sequences = ['aaaa', 'abab', 'abcabc', 'abcdeabcde', 'abcdefabcdef', 'aabbaabb', 'abcbab', 'abcdefghaa'].map(
    (answers) => {
      let streak: ReturnType<typeof streakAfter> | undefined
      for (const answer of answers) streak = streakAfter(streak, answer)
      return [answers, streak]
    },
  )
  await expectReviewed(
    [
      ...inputs.map((input) => [input === undefined ? 'undefined' : shown(input), printOf({ name: 'T', input })]),
      printOf({ name: 'U', input: {} }),
      ...outputs.map(([output, truncated]) => [
        shown(output),
        hashOfResult(call, { output, ...(truncated && { truncated }) }),
      ]),
      hashOfResult(call, { output: 'a', error_type: 'failed', error_message: 'b' }),
      [hashOfAnswer(['a', 'b', 'a']), hashOfAnswer(['b', 'a']), hashOfAnswer(['a'])],
      ...sequences,
      Object.entries(HABITS).map(([habit, { adviceAt, stuckAt }]) => [habit, adviceAt, stuckAt]),
    ],
    'repetitions',
  )
})
