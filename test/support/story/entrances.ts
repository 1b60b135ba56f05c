/** Every entrance, and how a story runs through it: with what is in the log then, and what the model read last. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Event, EventOf } from '../../../src/contract/events/event.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { comparable } from '../same-events.ts'
import { expectWhole } from '../subagents.ts'
import { ChatEntrance } from './chat-entrance.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { HeadlessEntrance } from './headless-entrance.ts'
import { QueryEntrance } from './query-entrance.ts'
import { RestEntrance } from './rest-entrance.ts'
import { storyTurn } from './script.ts'

type Create = (at: EntrancePlace) => Promise<Entrance>
type Tell = (entrance: Entrance, model: ScriptedModel) => Promise<Event[]>
type Story = { readonly events: readonly unknown[]; readonly lastRequest: readonly unknown[] }

export const BY_REST: Create = RestEntrance.create

export const OTHERS: Record<string, Create> = {
  'query() in the process of a program': QueryEntrance.inProcess,
  'query() against a server': QueryEntrance.againstServer,
  'the headless command line': async (at) => new HeadlessEntrance(at),
  'the interactive terminal': ChatEntrance.onThisMachine,
  'the interactive terminal of a server': ChatEntrance.ofServer,
}

/** `home`: a directory for this telling. */
export async function tellThrough(create: Create, tell: Tell, home: string): Promise<Story> {
  const place = join(home, 'place')
  await mkdir(place, { recursive: true })
  await using model = await startScriptedModel(storyTurn)
  await using entrance = await create({ home, place, modelUrl: model.baseUrl })
  const events = await tell(entrance, model)
  expectWhole(events)
  const places = [place, home, model.baseUrl]
  return {
    events: comparable(inOrder(events), places),
    lastRequest: comparable(model.requests.at(-1)!.messages, places),
  }
}

/** The result of an interrupted call follows its call here: on a slow machine it comes after the pause has its answer. */
function inOrder(events: readonly Event[]): Event[] {
  const isResult = (event: Event): event is EventOf<'ToolResult'> =>
    event.type === 'ToolResult' && event.error_type === 'interrupted'
  const results = events.filter(isResult)
  return events
    .filter((event) => !isResult(event))
    .flatMap((event) => [
      event,
      ...results.filter((result) => event.type === 'ToolUse' && result.tool_use_id === event.tool_use_id),
    ])
    .map((event, at) => ({ ...event, seq: at + 1 }))
}
