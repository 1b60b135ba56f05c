/** One story through every entrance: the same events in the log, and the same history for the model. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { faultsIn } from '../support/chat-requests.ts'
import { BY_REST, OTHERS, tellThrough } from '../support/story/entrances.ts'
import { tellStory } from '../support/story/tell.ts'

const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-one-story-')))
afterAll(() => rm(home, { recursive: true, force: true }))

/** Begun at once: most of the time is that of starting processes. */
const byRest = tellThrough(BY_REST, tellStory, join(home, 'REST'))

describe.concurrent('the same story', () => {
  test('by REST alone: each call has one result, and the model reads a valid history', async () => {
    const { events, lastRequest } = await byRest
    expect(faultsIn(lastRequest as never)).toEqual([])
    const all = events as readonly Event[]
    expect(all.filter((event) => event.type === 'RequestAnswered' && event.kind === 'permission')).toHaveLength(3)
    expect(new Set(all.map(typeOf))).toEqual(TYPES)
  })

  test.each(Object.entries(OTHERS))('by %s: the same events, and the same history', async (name, create) => {
    const story = await tellThrough(create, tellStory, join(home, name.replaceAll(/\W+/g, '-')))
    expect(story.events).toEqual((await byRest).events)
    expect(story.lastRequest).toEqual((await byRest).lastRequest)
  })
})

const typeOf = (event: Event): string => ('kind' in event ? `${event.type} ${event.kind}` : event.type)

const TYPES: ReadonlySet<string> = new Set([
  'SystemInit',
  'UserMessage',
  'StatusUpdate',
  'AssistantMessage',
  'ToolUse',
  'RequestOpened permission',
  'RequestAnswered permission',
  'ToolResult',
  'RequestOpened question',
  'RequestAnswered question',
  'SubagentStart',
  'Result',
])
