/** The view of a conversation that clients see. */
import type { ConversationView } from '../contract/conversation.ts'
import type { Event } from '../contract/events/event.ts'
import { QUEUED } from '../contract/events/status.ts'
import type { McpServers, ShownMcp } from '../contract/mcp/mcp-server.ts'
import type { NameIn } from '../contract/setting-fields.ts'
import { namesIn } from '../contract/setting-fields.ts'
import { lazilyForEach } from '../lib/lazily.ts'
import type { Settings } from './settings.ts'
import type { State } from './state.ts'
import { restingRequests } from './open-requests.ts'
import { modeOf } from './run-overrides.ts'
import { areInBackground } from './subagents.ts'

/** Lists show each state often. */
export const viewOf = lazilyForEach(makeView)

function makeView(state: State): ConversationView {
  const { settings } = state
  return {
    id: state.id,
    ...shownSettings(settings),
    state: {
      id: state.id,
      agent_finished: state.status === 'finished',
      confirmation_mode: settings.confirmation_mode ?? false,
      permission_mode: modeOf(state),
      agent_waiting_for_confirmation: state.status === 'waiting_for_confirmation',
      agent_paused: state.status === 'paused',
      event_count: state.lastSeq,
      activated_knowledge_microagents: settings.microagents ?? [],
    },
    status: state.status,
    ...(isRunQueued(state) && { queued: true }),
    ...(isUnfinished(state) && { unfinished: true }),
    last_seq: state.lastSeq,
    usage: state.usage,
    context: { used: state.contextTokens ?? 0 },
    ...(state.costUsd !== undefined && { cost_usd: state.costUsd }),
    created_at: state.createdAt,
    updated_at: state.updatedAt,
  }
}

/** Returns true while the run waits for a place. */
export const isRunQueued = ({ status, reason }: State): boolean => status === 'running' && reason === QUEUED

/** Returns true, too, while the agent is at rest, or paused. */
const isUnfinished = (state: State): boolean =>
  state.tasks.length > 0 || areInBackground(state) || restingRequests(state).length > 0

/** True if lists show the change, or watch it: a deadline passes also while the conversation is not open. */
export function changesLists(event: Event): boolean {
  switch (event.type) {
    case 'StatusUpdate':
    case 'ConfigUpdate':
    case 'UserMessage':
    case 'MessageWithdrawn':
    case 'Rewound':
      return true
    case 'RequestOpened':
      return event.deadline !== undefined
    case 'RequestClosed':
      return event.reason === 'timeout'
    default:
      return false
  }
}

type ShownSettings = Pick<ConversationView, NameIn<'shown'>>

type ConvertedSettings = { [K in NameIn<'shown'>]: Settings[K] extends ShownSettings[K] ? never : K }[NameIn<'shown'>]

/** The settings that are shown in another form than they are stored in; a missing one is a type error. */
const CONVERTED: { readonly [K in ConvertedSettings]: (stored: NonNullable<Settings[K]>) => ShownSettings[K] } = {
  mcp: shownMcp,
  client_hooks: (clients) => Object.keys(clients),
}

const CONVERTERS = new Map<string, (stored: never) => unknown>(Object.entries(CONVERTED))

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the name selects the converter of this type
const convert = (name: string, value: unknown): unknown => CONVERTERS.get(name)?.(value as never) ?? value

const SHOWN = namesIn('shown')

/** Settings change seldom. */
const shownSettings = lazilyForEach(selectShown)

/** What is not set, or `false`, is left out. */
function selectShown(settings: Settings): ShownSettings {
  const shownEntries = Object.fromEntries(
    SHOWN.flatMap((name) => {
      const storedValue = settings[name]
      return storedValue === undefined || storedValue === false ? [] : [[name, convert(name, storedValue)]]
    }),
  )
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each has the type of its entry in the table
  return shownEntries as ShownSettings
}

/** Returns the servers as clients send them. */
export function shownMcp(servers: McpServers): ShownMcp {
  const shownServers = Object.entries(servers).map(([name, { transport, ...server }]) => [
    name,
    { type: transport, ...server },
  ])
  return { mcpServers: Object.fromEntries(shownServers) }
}
