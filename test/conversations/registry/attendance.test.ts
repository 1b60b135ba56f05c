/** Which conversations are open in front of a person. */
import { expect, test } from 'vitest'
import { Attendance } from '../../../src/conversations/registry/attendance.ts'

test('an announcement holds for thirty seconds, and longer if it is repeated', () => {
  let now = 0
  const attendance = new Attendance(() => now)
  attendance.announce('a', 'chat')
  now = 29_999
  expect([attendance.has('a'), attendance.has('b')]).toEqual([true, false])
  attendance.announce('a', 'chat')
  now = 59_998
  expect(attendance.has('a')).toBe(true)
  now = 59_999
  expect(attendance.has('a')).toBe(false)
})

test('a conversation that two chats show is left when both have left it', () => {
  const attendance = new Attendance(() => 0)
  for (const client of ['one', 'other']) attendance.announce('a', client)
  attendance.leave('a', 'one')
  attendance.leave('unknown', 'one')
  expect(attendance.has('a')).toBe(true)
  attendance.leave('a', 'other')
  expect(attendance.has('a')).toBe(false)
})

test('only the last sixteen clients of a conversation are remembered, so that no key fills the memory', () => {
  const attendance = new Attendance(() => 0)
  const clients = Array.from({ length: 1000 }, (_, at) => `client ${at}`)
  for (const client of clients) attendance.announce('a', client)
  for (const client of clients.slice(-16)) attendance.leave('a', client)
  expect([attendance.has('a'), attendance.size]).toEqual([false, 0])
})

test('conversations that everybody has left without a word are forgotten', () => {
  let now = 0
  const attendance = new Attendance(() => now)
  for (let at = 0; at < 100; at += 1) attendance.announce(`conversation ${at}`, 'chat')
  now = 60_000
  attendance.announce('another', 'chat')
  expect(attendance.size).toBe(1)
})
