import { expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import type { Answerer, OpenedRequest } from '../../src/sdk/answers/request-responder.ts'
import { RequestResponder } from '../../src/sdk/answers/request-responder.ts'
import { closing } from '../../src/state/request-drafts.ts'
import { asked, decided, stored, toolResult } from '../conversations/events.ts'

/** What the program is asked, in order, with the signal of each; it never answers. */
function setUp() {
  const begun: { id: string; signal: AbortSignal }[] = []
  const answerer: Answerer = {
    workOn: (event) =>
      event.tool_use_ids.map((toolUseId) => ({
        toolUseId,
        run: (signal) => {
          begun.push({ id: `${event.request_id} ${toolUseId}`, signal })
          return new Promise(() => {})
        },
      })),
    mayAnswer: (status) => status === 'waiting_for_input',
  }
  const responder = new RequestResponder([answerer], () => expect.unreachable())
  const take = (...drafts: EventDraft[]) => {
    for (const draft of drafts) responder.take(stored(draft, 1))
    return begun.map(({ id, signal }) => (signal.aborted ? `${id} ended` : id))
  }
  return { responder, take }
}

const form = (request_id: string) =>
  ({
    type: 'RequestOpened',
    source: 'environment',
    kind: 'elicitation',
    request_id,
    tool_use_ids: ['a'],
    payload: { server: 'forms', questions: [] },
  }) satisfies Partial<OpenedRequest>

test('each request of a call is answered, and work ends with its request, not with its call', () => {
  const { take } = setUp()
  expect(take(form('one'), form('one'))).toEqual(['one a'])
  expect(take(closing(form('one'), 'interrupted'))).toEqual(['one a ended'])
  expect(take(form('two'))).toEqual(['one a ended', 'two a'])
  expect(take(toolResult('a'))).toEqual(['one a ended', 'two a ended'])
})

test('of a permission request the calls end that are decided', () => {
  const { take, responder } = setUp()
  const request = asked(['a', 'b', 'c'])
  const id = request.request_id
  expect(take(request)).toEqual([`${id} a`, `${id} b`, `${id} c`])
  expect(take(decided('b'), decided('c', { request_id: 'another' }))).toEqual([`${id} a`, `${id} b ended`, `${id} c`])
  responder.close()
  expect(take()).toEqual([`${id} a ended`, `${id} b ended`, `${id} c ended`])
  expect([responder.mayAnswer('waiting_for_input'), responder.mayAnswer('running')]).toEqual([true, false])
})
