/**
 * What runs on the event loop over text that somebody else wrote takes time linear to it. Each row is an input that some
 * usual way to do the same multiplies with itself: ten times the size would then take a hundred times as long.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { PostMessage } from '../../src/contract/run.ts'
import { describeEvent } from '../../src/contract/events/describe-event.ts'
import type { Event } from '../../src/contract/events/event.ts'
import { LlmConfig } from '../../src/contract/values/llm-config.ts'
import { createTextSearch } from '../../src/storage/shared/text-search.ts'
import { canonicalJson } from '../../src/lib/json/canonical-json.ts'
import { indexIgnoringSpace, indexOfText } from '../../src/lib/text/find-text.ts'
import { refuseComplexJson } from '../../src/lib/json/untrusted-json.ts'
import { compileGlob } from '../../src/files/search/glob.ts'
import { createSseDecoder } from '../../src/lib/sse-decoder.ts'
import { decodeText } from '../../src/tools/editor/text-encoding.ts'
import { judge, refusesTools } from '../../src/llm/error-rules.ts'
import { UpstreamFailure } from '../../src/llm/answer/answer-assembly.ts'
import { wellFormedJson } from '../../src/llm/request/request-parts.ts'
import { ANTHROPIC_MESSAGES, OPENAI_RESPONSES } from '../../src/llm/providers.ts'
import { dialectsAfterRefusal } from '../../src/llm/chat/chat-dialect.ts'
import { toLlmError } from '../../src/llm/llm-errors.ts'
import { createToolCallAssembly } from '../../src/llm/answer/tool-call-assembly.ts'
import { explainNoMatch } from '../../src/tools/editor/edit-hints.ts'
import { showEdit, showText } from '../../src/tools/editor/file-view.ts'
import { replaceEvery } from '../../src/tools/files/replace-text.ts'
import { parsePatch } from '../../src/tools/patch/parse-patch.ts'
import { patchText } from '../../src/tools/patch/patch-text.ts'
import { withPlainLineEnds, withReturns } from '../../src/tools/editor/line-ends.ts'
import {
  countLines,
  difference,
  findMatches,
  insertionAfter,
  linesAt,
  replacementAt,
} from '../../src/tools/editor/text-edit.ts'
import { findLines, needleOf } from '../../src/files/search/find-lines.ts'
import { IS_SOAK } from '../support/patience.ts'
import { tokensInText } from '../../src/security/tokens-in-text.ts'
import { processorMsOf, readingMsOf } from '../support/processor-time.ts'

/** The largest in `npm run soak` only. */
const SIZES = { '100 kB': 1e5, '1 MB': 1e6, ...(IS_SOAK && { '10 MB': 1e7 }) }

/**
 * Of the time it takes to look at each character once. Linear work takes up to 100 times as long, on the smallest of these
 * sizes a square takes 100,000 times as long. Nothing is slower by what is loaded or compiled meanwhile.
 */
const MOST_TIMES = 5000
const LOADING_MS = 1000

const same = (text: string) => text
const unchanged = async (text: string) => text
const ENDPOINT = { provider: 'openai' as const, baseUrl: 'http://127.0.0.1:1/v1', model: 'm', query: {}, headers: {} }
const upstream = (message: string) =>
  toLlmError(new UpstreamFailure({ message }), {
    endpoint: ENDPOINT,
    api: 'Messages',
    redact: same,
    partial: undefined,
  })

const REQUEST = { system: '', messages: [], tools: [] }
const refusedMessages = (complaint: string) =>
  ANTHROPIC_MESSAGES.dialectsAfterRefusal(ANTHROPIC_MESSAGES.firstDialect(ENDPOINT), complaint, REQUEST)
const refusedResponses = (complaint: string) =>
  OPENAI_RESPONSES.dialectsAfterRefusal(OPENAI_RESPONSES.firstDialect(ENDPOINT), complaint, REQUEST)

const SPACES = (size: number) => `${' '.repeat(size)}x`
const LOOKED = { path: '/f', parameter: 'old_str' }
/** A patch has at most 100,000 lines. */
const NEARLY_LINES = (size: number) => `@@\n${' a\n'.repeat(Math.min(size / 8, 90_000))}-b\n`
const patched = (text: string, hunks: string) => {
  const [file] = parsePatch(`*** Begin Patch\n*** Update File: a\n${hunks}*** End Patch`)
  return patchText('a', text, file?.kind === 'update' ? file.hunks : [], new AbortController().signal)
}
const FILLED = (size: number) => 'a'.repeat(size)
/** Found nowhere in a text of `a`, but nearly, everywhere. */
const NEARLY = (size: number) => `${'a'.repeat(size / 4)}b${'a'.repeat(size / 4)}`
const said = (text: string) => ({ type: 'AssistantMessage', text, tool_use_ids: [] }) as unknown as Event
const stored = (text: string) => ({
  seq: 1,
  type: 'UserMessage',
  json: JSON.stringify({ text }),
  event: { text } as never,
})

async function* inPieces(text: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += 256 * 1024) yield bytes.subarray(at, at + 256 * 1024)
}

async function searchLines(text: string, wanted: string): Promise<void> {
  for await (const _ of findLines(inPieces(text), needleOf(wanted, true)));
}

function callInFragments(size: number, piece: string): void {
  const calls = createToolCallAssembly(new Set())
  calls.add({ index: 0, id: 'a', name: 'Bash', arguments: '{"a":"' })
  for (let at = 0; at < size; at += piece.length) calls.add({ index: 0, id: 'a', name: 'Bash', arguments: piece })
  calls.finish({ isCertain: true })
}

/** Of files that a person lets agents read, one is read in full, whatever is in it. */
const tokensIn = (part: string) => (size: number) => tokensInText(part.repeat(size / part.length), 1024)

const WORK: readonly (readonly [what: string, work: (size: number) => unknown])[] = [
  ['secrets in a file: names without values', tokensIn('key=')],
  ['secrets in a file: open quotes', tokensIn('key="\\')],
  ['secrets in a file: names on lines', tokensIn('key:\n ')],
  ['secrets in a file: nearly a name', tokensIn('x_')],
  ['secrets in a file: nearly a token', tokensIn('eyJ-')],
  ['secrets in a file: private keys', tokensIn('-----BEGIN PRIVATE KEY-----')],
  ["a provider's error: spaces", (size) => upstream(SPACES(size))],
  ["a provider's error: `model` again and again", (size) => upstream('model '.repeat(size / 6))],
  ["a provider's error: `input` again and again", (size) => upstream(`"input" `.repeat(size / 8))],
  ["a provider's error: an open tag", (size) => upstream('<title>'.repeat(size / 7))],
  ['the rules for errors: spaces', (size) => judge({ status: 400, code: '', message: `model${SPACES(size)}` })],
  ['the rules for tools', (size) => refusesTools({ status: 400, code: '', message: `tool use${SPACES(size)}` })],
  [
    'the dialect of an endpoint',
    (size) =>
      dialectsAfterRefusal(
        {
          maxTokensField: 'max_tokens',
          streamOptions: false,
          images: true,
          alternates: false,
          schema: true,
          callIds: 'long',
          callExtras: 'returned',
        },
        'content'.repeat(size / 7),
      ),
  ],
  ['the dialect of Messages', (size) => refusedMessages(`max_tokens: 1 > ${'thinking '.repeat(size / 9)}`)],
  ['the dialect of Messages: digits', (size) => refusedMessages(`max_tokens: ${'1'.repeat(size)}`)],
  ['the dialect of Responses', (size) => refusedResponses('encrypted content reasoning '.repeat(size / 28))],
  ['an event stream: one line in pieces', (size) => pushAll(`data: ${FILLED(size)}`)],
  ['an event stream: empty lines', (size) => pushAll('\n'.repeat(size))],
  ['an event stream: short lines', (size) => pushAll('data:\n'.repeat(size / 6))],
  ['arguments of a call: spaces', (size) => callInFragments(size, ' '.repeat(1000))],
  ['arguments of a call: closed again and again', (size) => callInFragments(size, '{}'.repeat(50))],
  ['an event in the log of the server: spaces', (size) => describeEvent(said(SPACES(size)))],
  ['an event in the log of the server: lines', (size) => describeEvent(said(' \n'.repeat(size / 2)))],
  ['JSON: open lists', (size) => thrown(() => refuseComplexJson('['.repeat(size)))],
  ['JSON: values', (size) => thrown(() => refuseComplexJson('0,'.repeat(size / 2)))],
  ['JSON that is made well-formed: backslashes', (size) => wellFormedJson(`"${'\\'.repeat(size)}\\ud800"`)],
  ['JSON: escapes', (size) => refuseComplexJson(`"${'\\"'.repeat(size / 2)}"`)],
  ['JSON: backslashes', (size) => refuseComplexJson(`"${'\\'.repeat(size)}`)],
  ['JSON: quotes', (size) => refuseComplexJson('"'.repeat(size))],
  ['canonical JSON: keys', (size) => canonicalJson(JSON.parse(`{${keys(Math.min(size / 12, 50_000))}}`))],
  ['a text in a text', (size) => indexOfText(FILLED(size), NEARLY(size))],
  ['a text in a text, but for spaces', (size) => indexIgnoringSpace('a '.repeat(size / 2), NEARLY(size / 2))],
  ['a search of the log', (size) => createTextSearch(NEARLY(396).slice(0, 200))(stored(FILLED(size)))],
  ['a search of a file: one line', (size) => searchLines(FILLED(size), NEARLY(1996))],
  ['a search of a file: many lines', (size) => searchLines('a\n'.repeat(size / 2), 'b')],
  ['a search of a file: much is found', (size) => searchLines('a\n'.repeat(size / 2), 'a')],
  ['a pattern of brackets', (size) => namesMatched('['.repeat(999), size)],
  ['a pattern of classes', (size) => namesMatched('*[a-b]'.repeat(166), size)],
  ['a pattern of gaps', (size) => namesMatched(`${'*a'.repeat(499)}b`, size)],
  ['an edit: the text is nowhere', (size) => explainNoMatch(LOOKED, FILLED(size), NEARLY(size))],
  ['an edit: spaces', (size) => explainNoMatch(LOOKED, ' '.repeat(size), SPACES(size / 2))],
  [
    'an edit: line numbers',
    (size) => explainNoMatch(LOOKED, FILLED(size), ' '.repeat(size / 2).concat('1'.repeat(size / 2))),
  ],
  [
    'an edit: the text is everywhere',
    async (size) => linesAt(FILLED(size), (await findMatches(FILLED(size), 'a')).starts),
  ],
  ['a patch: the lines are nowhere', (size) => patched('a\n'.repeat(size / 2), NEARLY_LINES(size)).catch(() => {})],
  ['a patch: many hunks', (size) => patched('a\n'.repeat(size / 2), '@@\n-a\n+b\n'.repeat(Math.min(size / 10, 200)))],
  ['an edit of all: much is found', (size) => replaceEvery(FILLED(few(size)), ['a', 'b'], LOOKED)],
  [
    'an edit of all: more is found than is replaced',
    (size) => replaceEvery(FILLED(size), ['a', 'b'], LOOKED).catch(() => {}),
  ],
  ['an edit of all: line ends', (size) => replaceEvery('a\r\n'.repeat(few(size)), ['a\n', 'b\n'], LOOKED)],
  ['an edit of all: one line', (size) => replaceEvery(`\r\n${FILLED(few(size))}`, ['a', '\n'], LOOKED)],
  ['an edit: line ends', (size) => replacementAt('\r\n'.repeat(size / 2), size / 2 - 1, '\n', '\n\n')],
  ['an edit: lines put in', (size) => insertionAfter('\r\n'.repeat(size / 2), size / 2, '\n'.repeat(size))],
  [
    'an edit: the same but for one character',
    (size) => difference(`${FILLED(size)}b${FILLED(size)}`, FILLED(size * 2)),
  ],
  [
    'an edit shown',
    (size) => showEdit('/f', '\n'.repeat(size), { start: size - 1, end: size, replacement: '' }, unchanged),
  ],
  ['a view: empty lines', (size) => showText('/f', '\n'.repeat(size), [size - 5, -1], unchanged)],
  ['a view: carriage returns', (size) => showText('/f', `${'\r'.repeat(size)}x`, undefined, unchanged)],
  ['line ends', (size) => withReturns(withPlainLineEnds('\r\n'.repeat(size / 2)))],
  ['lines', (size) => countLines('\n'.repeat(size))],
  ['an encoding', (size) => decodeText(Buffer.alloc(size, 0xe4))],
  ['a conversation: an id', (size) => CreateConversation.safeParse({ id: '0'.repeat(size), workdir: SPACES(size) })],
  ['a configuration: headers', (size) => LlmConfig.safeParse({ extra_headers: { [SPACES(size)]: SPACES(size) } })],
  [
    'a configuration: a key and a URL',
    (size) => LlmConfig.safeParse({ api_key: SPACES(size), base_url: `http://${FILLED(size)}` }),
  ],
  ['a message: an image', (size) => PostMessage.safeParse(image('A'.repeat(size)))],
  ['a message: no image', (size) => PostMessage.safeParse(image(`${'A'.repeat(size)}=A`))],
]

function pushAll(text: string): void {
  const decoder = createSseDecoder({ maxEventChars: 2e7 })
  for (let at = 0; at < text.length; at += 65_536) decoder.push(text.slice(at, at + 65_536))
  decoder.rest()
}

function namesMatched(pattern: string, size: number): void {
  const matches = compileGlob(pattern)
  const name = 'a'.repeat(250)
  // As many names as a walk of that many bytes may bring; each takes at most its length times the pattern's.
  for (let at = 0; at < Math.min(size / 250, 400); at++) matches(name)
}

const keys = (count: number) => Array.from({ length: count }, (_, at) => `"k${at}":0`).join(',')

const image = (data: string) => ({
  message: { role: 'user', content: [{ type: 'image', media_type: 'image/png', data }] },
})

/** More occurrences are not replaced. */
const few = (size: number) => Math.min(Math.floor(size / 3), 100_000)

function thrown(work: () => void): void {
  expect(work).toThrow(/levels deep|more than .* values/)
}

describe.each(Object.entries(SIZES))('of %s', (_name, size) => {
  let plain: number
  beforeAll(async () => {
    plain = await readingMsOf(size)
  })

  test.each(WORK)('%s', async (_what, work) => {
    expect(await processorMsOf(() => work(size))).toBeLessThan(MOST_TIMES * plain + LOADING_MS)
  })
})
