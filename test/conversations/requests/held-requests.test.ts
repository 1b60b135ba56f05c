import { expect, test } from 'vitest'
import type { EventDraft } from '../../../src/contract/events/event.ts'
import { Problem } from '../../../src/contract/problem.ts'
import { HeldRequest, HeldRequests } from '../../../src/conversations/requests/held-requests.ts'

const PAYLOAD = { server: 'weather', questions: [] }
const VIEW = { kind: 'elicitation' as const, request_id: '', opened_at: '', tool_use_ids: ['a'], payload: PAYLOAD }

const FOUND = { answers: { Where: ['Here'] } }

test('an answer that is being stored counts, although its call is interrupted meanwhile', async () => {
  const waiting = new HeldRequest(VIEW)
  const stored = Promise.withResolvers<void>()
  const answered = waiting.answer(FOUND, () => stored.promise)
  waiting.interrupt()
  expect(waiting.isOver).toBe(true)
  stored.resolve()
  await answered
  expect(await waiting.end).toEqual({ by: 'answer', answer: FOUND })
})

test('a request that is interrupted while an answer fails to be stored ends without one', async () => {
  const waiting = new HeldRequest(VIEW)
  const stored = Promise.withResolvers<never>()
  const answered = waiting.answer(FOUND, () => stored.promise)
  waiting.interrupt()
  stored.reject(new Problem('storage_full', 'The disk is full.'))
  await expect(answered).rejects.toThrow('The disk is full.')
  expect(await waiting.end).toEqual({ by: 'interrupted' })
})

/** Requests whose log stores nothing until the test lets it. */
function setHeld() {
  const stored = Promise.withResolvers<void>()
  const appended: EventDraft[] = []
  const held = new HeldRequests({
    log: {
      append: (drafts) => (appended.push(...drafts), stored.promise.then(() => [])),
      subscribe: () => () => {},
    },
    state: { current: { run: undefined, subagents: [] } },
    rests: () => ({ begin: () => {}, end: async () => {}, check: () => {} }),
  })
  const { signal, abort } = abortable()
  const end = held.hold({ kind: 'elicitation', toolUseId: 'a', payload: PAYLOAD, signal })
  return {
    stored,
    appended,
    held,
    end,
    abort,
    request: held.get('elicitation', held.views('elicitation')[0]!.request_id)!,
  }
}

function abortable() {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}

test('an answer is stored after its request, however early it comes', async () => {
  const { stored, held, end, request } = setHeld()
  let isAnswered = false
  const answered = request.answer(FOUND, async () => {
    isAnswered = true
  })
  await Promise.resolve()
  expect(isAnswered).toBe(false)
  stored.resolve()
  await answered
  expect(await end).toEqual({ by: 'answer', answer: FOUND })
  expect(held.views('elicitation')).toEqual([])
})

test('a request has one end in the log, although it is interrupted while its answer is being stored', async () => {
  for (const isAnswered of [true, false]) {
    const { stored, appended, end, abort, request } = setHeld()
    stored.resolve()
    const answer = isAnswered ? request.answer(FOUND, async () => abort()) : abort()
    await answer
    expect((await end).by).toBe(isAnswered ? 'answer' : 'interrupted')
    expect(appended.map(({ type }) => type)).toEqual(['RequestOpened', ...(isAnswered ? [] : ['RequestClosed'])])
  }
})
