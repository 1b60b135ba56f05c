import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { CallbackHook } from '../../src/hooks/select-hooks.ts'
import type { HookPoint } from '../../src/contract/hooks/hook-point.ts'
import { runHooks } from '../../src/hooks/run-hooks.ts'
import { Queue } from '../../src/lib/queue.ts'

const NEVER = new AbortController().signal
const unused = () => {
  throw new Error('not used here')
}

const run = (hooks: readonly CallbackHook[], signal = NEVER) =>
  runHooks(
    {
      shells: unused,
      workdir: () => '/work',
      outputDirectory: '/nowhere',
      fetch: { exchange: unused },
      userAgent: 'test',
      credentialsOf: () => undefined,
      turns: new Queue({ limit: 8 }),
    },
    hooks,
    { hook_event_name: hooks[0]!.point, session_id: 'c' },
    signal,
  )

const callback = (call: CallbackHook['call'], more: Partial<CallbackHook> = {}): CallbackHook => ({
  type: 'callback',
  point: 'PreToolUse',
  name: 'own',
  call,
  ...more,
})

test('a function in the process gets the payload and answers', async () => {
  const [ran] = await run([callback(async (payload) => ({ decision: 'deny', reason: String(payload['session_id']) }))])
  expect(ran).toMatchObject({ failed: false, answer: { decision: 'deny', reason: 'c' } })
})

test.each<[HookPoint, 'continue' | 'block' | undefined, object]>([
  ['PreToolUse', undefined, { decision: 'deny' }],
  ['PreModelCall', undefined, { block: expect.stringContaining('boom') }],
  ['PreCompact', undefined, { block: expect.any(String) }],
  ['PreToolUse', 'continue', { message: 'boom' }],
  ['UserPromptSubmit', undefined, { message: 'boom' }],
  ['UserPromptSubmit', 'block', { block: expect.any(String) }],
  ['PermissionRequest', undefined, { message: 'boom' }],
  ['PermissionRequest', 'block', { decision: 'deny' }],
])('a failure at %s with on_failure %s', async (point, on_failure, answer) => {
  const crash = async () => {
    throw new Error('boom')
  }
  const [ran] = await run([callback(crash, { point, ...(on_failure && { on_failure }) })])
  expect(ran).toMatchObject({ failed: true, answer })
  if (!('decision' in answer) && !('block' in answer)) expect(ran!.answer).toEqual({ message: 'boom' })
})

test('they run in parallel, in the order of the configuration, each with its own time limit', async () => {
  const slow = callback(async (_, signal) => {
    await once(signal, 'abort')
    return {}
  })
  const runs = await run([{ ...slow, timeout: 0.05 }, callback(async () => ({ decision: 'allow' }))])
  expect(runs.map(({ answer }) => answer.decision)).toEqual(['deny', 'allow'])
  expect(runs[0]!.answer.reason).toContain('did not answer within 0.05 s')
})

test('one that ignores its signal does not delay the others’ end', async () => {
  const deaf = callback(() => new Promise(() => {}), { timeout: 0.05 })
  expect((await run([deaf]))[0]).toMatchObject({ failed: true })
})

test('an abort rejects with its reason', async () => {
  const stop = new AbortController()
  const waiting = run([callback(() => new Promise(() => {}))], stop.signal)
  const reason = new Error('paused')
  stop.abort(reason)
  await expect(waiting).rejects.toBe(reason)
})
