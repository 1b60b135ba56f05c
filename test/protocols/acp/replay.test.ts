/** The updates of a session live and from the log: an editor shows the same, whatever the agent did. */
import { assert, asyncProperty } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { Event } from '../../../src/contract/events/event.ts'
import type { TransientEvent } from '../../../src/contract/events/transient-event.ts'
import { follow } from '../../../src/events/event-feed.ts'
import { Projection } from '../../../src/protocols/acp/projection.ts'
import { ProjectionV2 } from '../../../src/protocols/acp/projection-v2.ts'
import { setTurnBench, turnScripts } from '../../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

type Update = { readonly sessionUpdate: string; readonly [field: string]: any } // eslint-disable-line typescript/no-explicit-any
type Shown = Map<string, unknown>

test.each([
  ['1', () => new Projection({ workdir: '/work', isOwn: () => false, showsNotices: true }), isBrokenOff],
  ['2', () => new ProjectionV2('/work'), () => false],
] as const)('property: a session of version %s is shown live as it is loaded later', async (_, project, mayStay) => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
      const { log } = conversation
      const after = log.head
      const events: (Event | TransientEvent)[] = []
      const following = (async () => {
        const ended = new AbortController()
        for await (const { records } of follow(log, { afterSeq: after, deltas: true, signal: ended.signal }))
          for (const { event } of records) {
            events.push(event as Event | TransientEvent)
            if (event.type === 'StatusUpdate' && event.previous_status === 'running') ended.abort()
          }
      })()
      await conversation.post({ message: 'go', run: true })
      await following
      const shownBy = (some: readonly (Event | TransientEvent)[]): Shown => {
        const projection = project()
        return shown(some.flatMap((event) => projection.take(event) as readonly Update[]))
      }
      const stored = events.filter((event) => 'seq' in event)
      const [live, loaded] = [shownBy(events), shownBy(stored)]
      const others = [...live].filter(([id]) => !loaded.has(id))
      expect([...live].filter(([id]) => loaded.has(id))).toEqual([...loaded])
      expect(others.filter(([id, text]) => !mayStay(id, text))).toEqual([])
      if (!turns.some(({ cut_after: cut }) => cut !== undefined)) expect(others).toEqual([])
    }),
    { numRuns: 15 },
  )
})

/** What an editor keeps: messages and thoughts by their ids, and calls with all that was said of them. */
function shown(updates: readonly Update[]): Shown {
  const kept: Shown = new Map()
  for (const { sessionUpdate, messageId, toolCallId, content, ...update } of updates) {
    const id = `${sessionUpdate.includes('thought') ? 'thought' : 'message'} ${messageId}`
    if (sessionUpdate.startsWith('tool_call')) {
      const before = kept.get(`call ${toolCallId}`)
      kept.set(`call ${toolCallId}`, { ...(before as object), ...update, ...(content && { content }) })
    } else if (sessionUpdate.endsWith('_chunk'))
      kept.set(id, `${(kept.get(id) as string | undefined) ?? ''}${content.text}`)
    else if (messageId === undefined) kept.set(JSON.stringify({ sessionUpdate, ...update }), true)
    else if (content.length === 0) kept.delete(id)
    else kept.set(id, content[0].text)
  }
  return kept
}

/** What only those have seen who were there: version 1 cannot take it back. */
function isBrokenOff(id: string, value: unknown): boolean {
  return id.startsWith('thought') || (typeof value === 'string' && value.endsWith('(This answer was broken off.)*\n\n'))
}
