/** A kill while an approval waits, through every entrance: the call is asked about again, allowed, and the run continues. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { BY_REST, OTHERS, tellThrough } from '../support/story/entrances.ts'
import { tellKilledWhileAsking } from '../support/story/tell.ts'

// A longer path would be wrapped on the screen of the chat.
const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-one-story-')))
afterAll(() => rm(home, { recursive: true, force: true }))

const byRest = tellThrough(BY_REST, tellKilledWhileAsking, join(home, 'REST'))

describe.concurrent('a kill while an approval waits', () => {
  test('by REST alone: the call is asked about once, and runs once', async () => {
    const types = ((await byRest).events as readonly Event[]).map(({ type }) => type)
    expect(types.filter((type) => /^(Request|Tool)/.test(type))).toEqual([
      'ToolUse',
      'RequestOpened',
      'RequestAnswered',
      'ToolResult',
    ])
    expect(types.filter((type) => type === 'UserMessage' || type === 'Result')).toEqual(['UserMessage', 'Result'])
  })

  test.each(Object.entries(OTHERS))('by %s: the same events, and the same history', async (name, create) => {
    const story = await tellThrough(create, tellKilledWhileAsking, join(home, name.replaceAll(/\W+/g, '-')))
    expect(story).toEqual(await byRest)
  })
})
