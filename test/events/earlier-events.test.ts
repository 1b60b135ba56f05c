import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Event } from '../../src/contract/events/event.ts'
import { currentEvent, currentTypes, earlierTypes, isEarlier } from '../../src/events/earlier-events.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { tempDirectory } from './fixtures.ts'

const ID = '018f0000-0000-7000-8000-000000000001'
const REQUEST = '018f0000-0000-7000-8000-00000000000b'
const HASH = 'a'.repeat(64)
/** Of the call `a`. Clients may have stored it. */
const OF_CALL = '07b8666e-9f0f-8d18-85db-202ff3a348a3'
const ENVELOPE = {
  seq: 1,
  id: '018f0000-0000-7000-8000-00000000000c',
  timestamp: '2026-01-01T00:00:00.000Z',
  version: 1,
  conversation_id: ID,
}

const current = (event: object) => Event.parse(currentEvent({ ...ENVELOPE, source: 'environment', ...event }))

describe('an event of an earlier version', () => {
  describe('becomes as a whole', () => {
    const { version: _, ...envelope } = ENVELOPE
    const opened = (kind: string, tool_use_ids: string[], payload: object) =>
      ({ type: 'RequestOpened', kind, request_id: REQUEST, tool_use_ids, payload }) as const
    const answer = (kind: string, tool_use_ids: string[], said: object) =>
      ({ type: 'RequestAnswered', kind, request_id: REQUEST, tool_use_ids, answer: said, answered_by: 'user' }) as const
    const closed = (kind: string, tool_use_ids: string[], reason: string) =>
      ({ type: 'RequestClosed', kind, request_id: REQUEST, tool_use_ids, reason }) as const
    const asked = { tool_use_id: 'a', name: 'Bash', input: { command: 'ls' } }
    const question = { question: 'Which?', header: 'W', options: [], multi_select: false }
    const made = { tool_use_id: 'a', input_hash: HASH, behavior: 'deny' }
    const host = { host: 'a.test', port: 1 }

    test.each<[string, object, object]>([
      [
        'PermissionRequest',
        { request_id: REQUEST, tool_uses: [asked, { ...asked, tool_use_id: 'b' }] },
        opened('permission', ['a', 'b'], { tool_uses: [asked, { ...asked, tool_use_id: 'b' }] }),
      ],
      [
        'PermissionDecision',
        { request_id: REQUEST, ...made, decided_by: 'user' },
        answer('permission', ['a'], { decisions: [made] }),
      ],
      [
        'PermissionDecision',
        { request_id: REQUEST, ...made, decided_by: 'superseded', message: 'superseded: more' },
        { ...closed('permission', ['a'], 'message'), message: 'superseded: more' },
      ],
      [
        'PermissionDecision',
        { request_id: REQUEST, ...made, decided_by: 'superseded' },
        closed('permission', ['a'], 'interrupted'),
      ],
      [
        'UserQuestion',
        { question_id: REQUEST, tool_use_id: 'a', questions: [question] },
        opened('question', ['a'], { questions: [question] }),
      ],
      ['UserAnswer', { question_id: REQUEST, answers: ['b'] }, answer('question', [], { answers: ['b'] })],
      [
        'ClientToolCall',
        { ...asked, deadline: ENVELOPE.timestamp },
        {
          ...opened('client_tool', ['a'], { name: 'Bash', input: { command: 'ls' } }),
          request_id: OF_CALL,
          deadline: ENVELOPE.timestamp,
        },
      ],
      [
        'ClientToolResult',
        { tool_use_id: 'a', output: 'done', is_error: false },
        { ...answer('client_tool', ['a'], { output: 'done', is_error: false }), request_id: OF_CALL },
      ],
      ['NetworkRequest', { request_id: REQUEST, ...host }, opened('network', [], host)],
      [
        'NetworkDecision',
        { request_id: REQUEST, ...host, behavior: 'allow', decided_by: 'user' },
        answer('network', [], { behavior: 'allow' }),
      ],
      [
        'NetworkDecision',
        { request_id: REQUEST, ...host, behavior: 'deny', decided_by: 'timeout' },
        closed('network', [], 'timeout'),
      ],
    ])('%s', (type, fields, expected) => {
      const event = currentEvent({ ...ENVELOPE, source: 'environment', type, ...fields })
      expect(event).toStrictEqual({ ...envelope, version: 3, source: 'environment', ...expected })
      const order = ['seq', 'type', 'id', 'timestamp', 'source', 'version', 'conversation_id']
      expect(Object.keys(event).slice(0, order.length)).toEqual(order)
    })
  })

  test.each([
    ['superseded: the user wrote a message instead of deciding', 'message'],
    ['interrupted: the user wrote a message before this call began; it did not run', 'message'],
    ['This conversation was forked while the call was open; its result belongs to the original only.', 'forked'],
    ['The server stopped before this call began; it did not run.', 'server_restart'],
    ['interrupted: the run was paused', 'interrupted'],
    [undefined, 'interrupted'],
  ])('that gives up a decision with %j closes the request: %s', (message, reason) => {
    const fields = { request_id: REQUEST, tool_use_id: 'a', input_hash: HASH, behavior: 'deny', message }
    expect(current({ type: 'PermissionDecision', ...fields, decided_by: 'superseded' })).toMatchObject({
      ...ENVELOPE,
      version: 3,
      type: 'RequestClosed',
      kind: 'permission',
      tool_use_ids: ['a'],
      reason,
    })
  })

  test.each([
    ['user', 'user'],
    ['hook', 'hook'],
    ['callback', 'mode'],
  ])('with a decision by %s is an answer by %s', (decided_by, answered_by) => {
    const decision = { tool_use_id: 'a', input_hash: HASH, behavior: 'allow', updated_input: { command: 'ls' } }
    const event = { type: 'PermissionDecision', source: 'user', request_id: REQUEST, ...decision, decided_by }
    expect(current(event)).toMatchObject({
      type: 'RequestAnswered',
      source: 'user',
      answer: { decisions: [decision] },
      answered_by,
    })
  })

  test('keeps the message of a decision, and has none without one', () => {
    const made = { tool_use_id: 'a', input_hash: HASH, behavior: 'deny' }
    const decisionOf = (fields: object) => {
      const event = { type: 'PermissionDecision', source: 'user', request_id: REQUEST, ...made, decided_by: 'user' }
      const { answer } = currentEvent({ ...ENVELOPE, ...event, ...fields }) as { answer: { decisions: object[] } }
      return answer.decisions[0]
    }
    expect(decisionOf({ message: 'No.' })).toStrictEqual({ ...made, message: 'No.' })
    expect(decisionOf({})).toStrictEqual(made)
  })

  test.each([
    ['user', { type: 'RequestAnswered', answer: { behavior: 'deny' }, answered_by: 'user' }],
    ['policy', { type: 'RequestAnswered', answer: { behavior: 'deny' }, answered_by: 'policy' }],
    ['timeout', { type: 'RequestClosed', reason: 'timeout' }],
    ['server_restart', { type: 'RequestClosed', reason: 'server_restart' }],
  ])('about a host, decided by %s', (decided_by, expected) => {
    const event = {
      type: 'NetworkDecision',
      request_id: REQUEST,
      host: 'a.test',
      port: 1,
      behavior: 'deny',
      decided_by,
    }
    expect(current(event)).toMatchObject({ kind: 'network', request_id: REQUEST, ...expected })
  })

  test.each([
    [{ type: 'PermissionRequest', request_id: REQUEST, tool_uses: null }, /tool_uses/],
    [{ type: 'PermissionRequest', request_id: REQUEST, tool_uses: ['a'] }, /tool_uses/],
    [{ type: 'UserQuestion', question_id: REQUEST, tool_use_id: 'a' }, /questions/],
    [{ type: 'NetworkDecision', request_id: REQUEST, behavior: 'deny', decided_by: 'nobody' }, /decided_by/],
  ])('that is malformed is refused: %j', (event, fault) => {
    expect(() => currentEvent({ ...ENVELOPE, source: 'environment', ...event })).toThrow(fault)
  })

  test('keeps its run and its subagent', () => {
    const of = { run_id: REQUEST, parent_tool_use_id: 'task', agent_name: 'helper' }
    const event = {
      type: 'ClientToolCall',
      ...of,
      tool_use_id: 'a',
      name: 'n',
      input: {},
      deadline: ENVELOPE.timestamp,
    }
    expect(current(event)).toMatchObject({ type: 'RequestOpened', kind: 'client_tool', ...of })
  })

  test('of a client tool has the request id of its result, and of no other call', () => {
    const idOf = (type: string, tool_use_id: string, conversation_id = ID) =>
      currentEvent({ ...ENVELOPE, conversation_id, type, tool_use_id })['request_id']
    expect(idOf('ClientToolResult', 'a')).toBe(idOf('ClientToolCall', 'a'))
    const others = [idOf('ClientToolCall', 'b'), idOf('ClientToolCall', 'a', REQUEST)]
    expect(new Set([...others, idOf('ClientToolCall', 'a')]).size).toBe(3)
  })
})

test('lists of types name the events of today', () => {
  expect(currentTypes(['Result', 'PermissionRequest', 'UserQuestion', 'NetworkDecision'])).toEqual([
    'Result',
    'RequestOpened',
    'RequestAnswered',
    'RequestClosed',
  ])
  expect([...earlierTypes(new Set(['RequestClosed', 'Result']))]).toEqual(['PermissionDecision', 'NetworkDecision'])
  expect(earlierTypes(new Set(['Result'])).size).toBe(0)
  expect([isEarlier('UserAnswer'), isEarlier('RequestAnswered'), isEarlier('toString')]).toEqual([true, false, false])
})

test.each([
  ['PermissionRequest', ['RequestOpened']],
  ['PermissionDecision', ['RequestAnswered', 'RequestClosed']],
  ['UserQuestion', ['RequestOpened']],
  ['UserAnswer', ['RequestAnswered']],
  ['ClientToolCall', ['RequestOpened']],
  ['ClientToolResult', ['RequestAnswered']],
  ['NetworkRequest', ['RequestOpened']],
  ['NetworkDecision', ['RequestAnswered', 'RequestClosed']],
])('who asks for %s gets %j, and who asks for those gets it', (type, becomes) => {
  expect(isEarlier(type)).toBe(true)
  expect(currentTypes([type])).toEqual(becomes)
  for (const each of ['RequestOpened', 'RequestAnswered', 'RequestClosed'])
    expect(earlierTypes(new Set([each])).has(type), each).toBe(becomes.includes(each))
})

test('an earlier event that is not one is damage, which names its line', async () => {
  await using directory = await tempDirectory()
  const store = createJsonlStore({ directory: directory.path })
  await mkdir(join(directory.path, ID))
  const { seq, id, timestamp, ...rest } = ENVELOPE
  const event = { seq, type: 'PermissionRequest', id, timestamp, source: 'environment', ...rest, tool_uses: [null] }
  await appendFile(join(directory.path, ID, 'events.jsonl'), `${JSON.stringify(event)}\n`)
  const { log } = await store.open(ID)
  await expect(log.read({ limit: 10 })).rejects.toMatchObject({ code: 'conversation_damaged', details: { line: 1 } })
  await log.close()
})
