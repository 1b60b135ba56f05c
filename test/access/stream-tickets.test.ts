/** Tickets of streams and downloads: what they allow, and that they work once. */
import { expect, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { StreamTickets } from '../../src/access/stream-tickets.ts'

const ID = '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1'
const OTHER = '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e2'
const INVALID = expect.objectContaining({ code: 'unauthorized' })
const ofConversation = { conversation_id: ID, scopes: ['read' as const] }
const ofFirehose = { firehose: true as const, scopes: ['read' as const] }
const STREAM = { conversationId: ID }
const FIREHOSE = { conversationId: undefined }
const ofFile = { ...ofConversation, file: 'a.txt' }
const FILE = { conversationId: ID, file: 'a.txt' }

const targetOf = (asked: object) => (asked === ofFile ? FILE : asked === ofFirehose ? FIREHOSE : STREAM)

const accessOf = (end = new AbortController()) =>
  new Access({ id: 'a key', name: 'dashboard' }, ['read', 'write'], { userId: 'user-17' }, end.signal)

test('a ticket works once', () => {
  const tickets = new StreamTickets()
  const { ticket } = tickets.issue(accessOf(), ofConversation)
  tickets.redeem(ticket, STREAM)
  expect(() => tickets.redeem(ticket, STREAM)).toThrow(INVALID)
})

test('a ticket is for its stream or file only, and an attempt at another one uses it up', () => {
  const tickets = new StreamTickets()
  for (const [asked, wrong] of [
    [ofConversation, { conversationId: OTHER }],
    [ofConversation, FIREHOSE],
    [ofConversation, FILE],
    [ofFirehose, STREAM],
    [ofFile, STREAM],
    [ofFile, { conversationId: ID, file: 'b.txt' }],
    [ofFile, { conversationId: OTHER, file: 'a.txt' }],
  ] as const) {
    const { ticket } = tickets.issue(accessOf(), asked)
    expect(() => tickets.redeem(ticket, wrong)).toThrow(INVALID)
    expect(() => tickets.redeem(ticket, targetOf(asked))).toThrow(INVALID)
  }
})

test('a ticket is valid for 30 s', () => {
  let now = 0
  const tickets = new StreamTickets(() => now)
  const [early, late] = [tickets.issue(accessOf(), ofFirehose), tickets.issue(accessOf(), ofFirehose)]
  now = 29_999
  tickets.redeem(early.ticket, FIREHOSE)
  now = 30_000
  expect(() => tickets.redeem(late.ticket, FIREHOSE)).toThrow(INVALID)
})

test('a ticket allows reading its conversation, within the limits of the key, and ends with the key', () => {
  const tickets = new StreamTickets()
  const end = new AbortController()
  const [used, unused] = [tickets.issue(accessOf(end), ofConversation), tickets.issue(accessOf(end), ofConversation)]
  const access = tickets.redeem(used.ticket, STREAM)
  expect([access.allows('read'), access.allows('write')]).toEqual([true, false])
  expect(access.sees({ id: ID, userId: 'user-17' })).toBe(true)
  expect(access.sees({ id: ID, userId: 'user-18' })).toBe(false)
  expect(access.sees({ id: OTHER, userId: 'user-17' })).toBe(false)
  end.abort()
  expect(access.ended.aborted).toBe(true)
  expect(() => tickets.redeem(unused.ticket, STREAM)).toThrow(INVALID)
})

test('a ticket of a file allows files, and no reading of the conversation', () => {
  const tickets = new StreamTickets()
  const access = tickets.redeem(tickets.issue(accessOf(), ofFile).ticket, FILE)
  expect(access.scopes).toEqual(['files'])
})

test('unused tickets of one key are bounded: its oldest is removed, and none of another key', () => {
  const tickets = new StreamTickets()
  const other = tickets.issue(Access.master(), ofFirehose)
  const own = accessOf()
  const first = tickets.issue(own, ofFirehose)
  const second = tickets.issue(own, ofFirehose)
  for (let made = 2; made <= 1000; made++) tickets.issue(own, ofFirehose)
  expect(() => tickets.redeem(first.ticket, FIREHOSE)).toThrow(INVALID)
  tickets.redeem(second.ticket, FIREHOSE)
  tickets.redeem(other.ticket, FIREHOSE)
})
