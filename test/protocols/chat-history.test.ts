/** How much of a long thread a request reads. */
import { expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import type { UserPart } from '../../src/contract/values/message.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { formatMark, marksOf, placeOf } from '../../src/protocols/openai/chat-history.ts'
import type { ChatMessage } from '../../src/protocols/shared/earlier-messages.ts'
import { createBodyHash } from '../../src/security/body-hash.ts'
import { sharedLog } from '../events/fixtures.ts'

const hashBody = createBodyHash(['key-material-of-the-tests'])
const partsOf = (text: string): UserPart[] => [{ type: 'text', text }]
const said = (text: string): ChatMessage[] => [
  { role: 'user', parts: partsOf(text), calls: [] },
  { role: 'assistant', parts: [], calls: [] },
]
const marksAfter = (before: readonly ChatMessage[], text: string) =>
  marksOf({ before, newParts: partsOf(text) }, hashBody)

test('the place of a request in a long thread is found in its newest messages, and no more of it is read', async () => {
  await using shared = await sharedLog()
  const { log, id } = shared
  const drafts = Array.from({ length: 1100 }, (_, at): EventDraft => {
    const key = formatMark(marksAfter([], `message ${at}`).now, undefined)
    const content = partsOf(`message ${at}`)
    return { type: 'UserMessage', source: 'user', content, run: false, idempotency_key: key, body_hash: 'hash' }
  })
  await log.append(drafts)
  let readCount = 0
  const read: typeof log.read = async (options) => {
    const page = await log.read(options)
    readCount += page.events.length
    return page
  }
  const state = { rewound: [], settings: {} }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a place depends on
  const conversation = { id, state, log: { head: log.head, read } } as unknown as Conversation
  const placeAfter = async (before: readonly ChatMessage[], text: string) => {
    readCount = 0
    const { kind } = await placeOf(conversation, marksAfter(before, text))
    return { kind, isBounded: readCount < 1100, isShort: readCount < 100 }
  }
  expect(await placeAfter(said('message 1099'), 'next')).toEqual({ kind: 'end', isBounded: true, isShort: true })
  expect(await placeAfter(said('message 500'), 'next')).toMatchObject({ kind: 'earlier', isBounded: true })
  expect(await placeAfter(said('message 50'), 'next')).toEqual({ kind: 'other', isBounded: true, isShort: false })
  expect(await placeAfter([], 'message 0')).toEqual({ kind: 'other', isBounded: true, isShort: false })
})
