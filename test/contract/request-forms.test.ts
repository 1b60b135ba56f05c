import { expect, test } from 'vitest'
import type { KindOfForm } from '../../src/contract/requests/request-forms.ts'
import {
  decide,
  decisionOf,
  hasForm,
  isForPeople,
  KINDS_FOR_PEOPLE,
  titleOfRequest,
} from '../../src/contract/requests/request-forms.ts'
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import { isStored, REQUEST_KINDS, REQUESTS, restOf } from '../../src/contract/requests/request-kinds.ts'
import { AnswerRequest } from '../../src/contract/request.ts'

test.each(REQUEST_KINDS)('the texts that show a %s name fields of its payload only', (kind) => {
  const { form, payload } = REQUESTS[kind]
  const named = JSON.stringify(form).matchAll(/\{(\w+)\}/g)
  const fields = Object.keys(payload.shape)
  expect([...named].map(([, field]) => field).filter((field) => !fields.includes(field!))).toEqual([])
})

test.each(REQUEST_KINDS)('the answer in the example of a %s is one', (kind) => {
  expect(AnswerRequest.parse({ kind, ...REQUESTS[kind].example }).kind).toBe(kind)
})

test('a decision is shown with the fields of its payload as they are', () => {
  const request = { kind: 'network' as const, payload: { host: '{port}.example.com', port: 443 } }
  const { subject, sentence, remembered } = decisionOf(request)
  expect(subject).toBe('{port}.example.com:443')
  expect(sentence.english).toBe('The agent wants to connect to {port}.example.com:443.')
  expect(remembered).toBe('connections to {port}.example.com:443')
})

const DECISIONS = REQUEST_KINDS.filter((kind): kind is KindOfForm<'decision'> => REQUESTS[kind].form.is === 'decision')

test.each(DECISIONS)('the answer to a %s is one that the server accepts', (kind) => {
  for (const remember of [true, false]) {
    const answer = decide(kind, 'allow', remember)
    expect(AnswerRequest.parse(answer)).toEqual(answer)
  }
})

test('programs answer client tools and hooks, and a person all other kinds', () => {
  const others = REQUEST_KINDS.filter((kind) => !KINDS_FOR_PEOPLE.includes(kind))
  expect(others).toEqual(['client_tool', 'hook'])
})

test('a client shows no request of a kind that it does not know, and ends at none', () => {
  const request = JSON.parse('{"kind": "of-a-newer-server", "payload": {}}') as { kind: RequestKind }
  expect(isForPeople(request)).toBe(false)
  expect(hasForm(request, 'program')).toBe(false)
  expect(titleOfRequest(request).english).toBe('of-a-newer-server')
  expect(restOf(request.kind)).toBeUndefined()
  expect(isStored(request.kind)).toBe(true)
})
