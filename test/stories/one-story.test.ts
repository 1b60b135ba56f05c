/** One story through every entrance: the same events in the log, and the same history for the model. */
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { faultsIn } from '../support/chat-requests.ts'
import { comparable } from '../support/same-events.ts'
import { ChatEntrance } from '../support/story/chat-entrance.ts'
import type { Entrance, EntrancePlace } from '../support/story/entrance.ts'
import { HeadlessEntrance } from '../support/story/headless-entrance.ts'
import { QueryEntrance } from '../support/story/query-entrance.ts'
import { RestEntrance } from '../support/story/rest-entrance.ts'
import { storyTurn } from '../support/story/script.ts'
import { tellStory } from '../support/story/tell.ts'
import { expectWhole } from '../support/subagents.ts'

const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-one-story-')))
afterAll(() => rm(home, { recursive: true, force: true }))

type Create = (at: EntrancePlace) => Promise<Entrance>
type Told = { readonly events: readonly unknown[]; readonly lastRequest: readonly unknown[] }

async function tellThrough(create: Create, name: string): Promise<Told> {
  const own = join(home, name)
  const place = join(own, 'place')
  await mkdir(place, { recursive: true })
  await using model = await startScriptedModel(storyTurn)
  await using entrance = await create({ home: own, place, modelUrl: model.baseUrl })
  const events = await tellStory(entrance, model)
  expectWhole(events)
  const places = [place, own, model.baseUrl]
  return { events: comparable(events, places), lastRequest: comparable(model.requests.at(-1)!.messages, places) }
}

const OTHERS: Record<string, Create> = {
  'query() in the process of a program': QueryEntrance.inProcess,
  'query() against a server': QueryEntrance.againstServer,
  'the headless command line': async (at) => new HeadlessEntrance(at),
  'the interactive terminal': ChatEntrance.onThisMachine,
  'the interactive terminal of a server': ChatEntrance.ofServer,
}

/** Begun at once: most of the time is that of starting processes. */
const byRest = tellThrough(RestEntrance.create, 'REST')

describe.concurrent('the same story', () => {
  test('by REST alone: each call has one result, and the model reads a valid history', async () => {
    const { events, lastRequest } = await byRest
    expect(faultsIn(lastRequest as never)).toEqual([])
    const types = (events as readonly Event[]).map(({ type }) => type)
    expect(types.filter((type) => type === 'PermissionDecision')).toHaveLength(4)
    expect(new Set(types)).toEqual(TYPES)
  })

  test.each(Object.entries(OTHERS))('by %s: the same events, and the same history', async (name, create) => {
    const told = await tellThrough(create, name.replaceAll(/\W+/g, '-'))
    expect(told.events).toEqual((await byRest).events)
    expect(told.lastRequest).toEqual((await byRest).lastRequest)
  })
})

const TYPES: ReadonlySet<Event['type']> = new Set([
  'SystemInit',
  'UserMessage',
  'StatusUpdate',
  'AssistantMessage',
  'ToolUse',
  'PermissionRequest',
  'PermissionDecision',
  'ToolResult',
  'UserQuestion',
  'UserAnswer',
  'SubagentStart',
  'Result',
])
