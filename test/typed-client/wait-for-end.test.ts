/** How a run ended, as a client reads it from the events. */
import { describe, expect, test } from 'vitest'
import { latestEnd, outcomeIn } from '../../src/client/conversation/wait-for-end.ts'

type EndEvent = Awaited<Parameters<typeof outcomeIn>[0]> extends AsyncIterable<infer E> ? E : never

const [FIRST, SECOND] = ['first run', 'second run']
const status = (run_id: string | undefined, to: string) => ({ type: 'StatusUpdate', run_id, status: to })
const result = (run_id: string, final_text: string, parent_tool_use_id?: string) => ({
  type: 'Result',
  run_id,
  final_text,
  ...(parent_tool_use_id !== undefined && { parent_tool_use_id }),
})
const error = (run_id: string, message: string, parent_tool_use_id?: string) => ({
  type: 'ErrorEvent',
  run_id,
  error_type: 'config',
  message,
  ...(parent_tool_use_id !== undefined && { parent_tool_use_id }),
})

async function* each(events: readonly object[]): AsyncGenerator<EndEvent> {
  for (const event of events) yield event as EndEvent
}

const EARLIER = [status(FIRST, 'running'), result(FIRST, 'Earlier.'), status(FIRST, 'idle')]
const ENDED = [...EARLIER, status(SECOND, 'running'), result(SECOND, 'Done.'), status(SECOND, 'idle')]
const newestFirst = (events: readonly object[]) => each(events.toReversed())

describe('the end of the latest run', () => {
  test('is found behind the ends of any number of subagents', async () => {
    const later = Array.from({ length: 30 }, (_, at) => result(SECOND, `Of a subagent ${at}.`, 'call'))
    const expected = { run_id: SECOND, result: { final_text: 'Done.' } }
    expect(await latestEnd(newestFirst([...ENDED, ...later]))).toMatchObject(expected)
    const elsewhere = later.map((event) => ({ ...event, run_id: 'another run' }))
    expect(await latestEnd(newestFirst([...ENDED, ...elsewhere]))).toMatchObject(expected)
  })

  test('has the error of the run, and not that of a subagent', async () => {
    const failed = [...EARLIER, status(SECOND, 'running'), error(SECOND, 'Its own.'), status(SECOND, 'error')]
    expect(await latestEnd(newestFirst([...failed, error(SECOND, 'Of a subagent.', 'call')]))).toMatchObject({
      run_id: SECOND,
      error: { type: 'config', message: 'Its own.' },
    })
  })

  test('has no result of an earlier run while another one waits', async () => {
    const waiting = [...EARLIER, status(SECOND, 'running'), status(SECOND, 'waiting_for_confirmation')]
    expect(await latestEnd(newestFirst(waiting))).toEqual({ run_id: SECOND })
  })

  test('is nothing after what belongs to no run, such as a rewind', async () => {
    expect(await latestEnd(newestFirst([...ENDED, status(undefined, 'idle')]))).toEqual({ run_id: undefined })
    expect(await latestEnd(each([]))).toEqual({ run_id: undefined })
  })
})

test('a run whose subagent has failed has no error itself', async () => {
  const [began, ...end] = ENDED.slice(3)
  const outcome = await outcomeIn(each([began!, error(SECOND, 'Of a subagent.', 'call'), ...end]), SECOND)
  expect(outcome).toMatchObject({ status: 'idle', result: { final_text: 'Done.' } })
  expect(outcome).not.toHaveProperty('error')
})
