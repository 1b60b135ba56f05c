/**
 * Events of earlier versions, as this version has them: one for one, with the same seq, id and time. All readers of a
 * log get the events through here. Before version 3 each kind of request had different events.
 */
import { createHash } from 'node:crypto'

type Fields = Readonly<Record<string, unknown>>

/** The types that an earlier event can become. */
const BECOMES: Readonly<Record<string, readonly string[]>> = {
  PermissionRequest: ['RequestOpened'],
  PermissionDecision: ['RequestAnswered', 'RequestClosed'],
  UserQuestion: ['RequestOpened'],
  UserAnswer: ['RequestAnswered'],
  ClientToolCall: ['RequestOpened'],
  ClientToolResult: ['RequestAnswered'],
  NetworkRequest: ['RequestOpened'],
  NetworkDecision: ['RequestAnswered', 'RequestClosed'],
}

export const isEarlier = (type: string): boolean => Object.hasOwn(BECOMES, type)

/** The earlier types that can become one of these. */
export function earlierTypes(types: ReadonlySet<string>): ReadonlySet<string> {
  const earlier = new Set<string>()
  for (const [name, current] of Object.entries(BECOMES))
    for (const type of current) if (types.has(type)) earlier.add(name)
  return earlier
}

/** Returns what a list of types from an earlier version names today. */
export const currentTypes = (types: readonly string[]): string[] => [
  ...new Set(types.flatMap((type) => (isEarlier(type) ? (BECOMES[type] ?? []) : [type]))),
]

/** Returns the event with its fields in the order of a log. `isEarlier` is true for its type. Throws if it is malformed. */
export function currentEvent({ seq, type, id, timestamp, source, conversation_id, ...rest }: Fields): Fields {
  const { version: _, run_id, parent_tool_use_id, agent_name, ...own } = rest
  const [name, fields] = translate(String(type), { ...own, id, conversation_id })
  const agent = parent_tool_use_id !== undefined && { parent_tool_use_id, agent_name }
  const run = run_id !== undefined && { run_id }
  return { seq, type: name, id, timestamp, source, version: 3, conversation_id, ...run, ...agent, ...fields }
}

function translate(type: string, event: Fields): readonly [type: string, fields: Fields] {
  switch (type) {
    case 'PermissionRequest':
      return permissionRequest(event)
    case 'PermissionDecision':
      return decision(event)
    case 'UserQuestion':
      return requestOpened('question', event['question_id'], [event['tool_use_id']], {
        questions: listIn(event, 'questions'),
      })
    case 'UserAnswer':
      return requestAnswered('question', event['question_id'], [], { answers: event['answers'] })
    case 'ClientToolCall': {
      const { name, input, deadline, tool_use_id } = event
      const [is, fields] = requestOpened('client_tool', requestOfCall(event), [tool_use_id], { name, input })
      return [is, { ...fields, deadline }]
    }
    case 'ClientToolResult': {
      const { output, is_error, tool_use_id } = event
      return requestAnswered('client_tool', requestOfCall(event), [tool_use_id], { output, is_error })
    }
    case 'NetworkRequest':
      return requestOpened('network', event['request_id'], [], { host: event['host'], port: event['port'] })
    default:
      return networkDecision(event)
  }
}

function permissionRequest(event: Fields): readonly [string, Fields] {
  const tool_uses = listIn(event, 'tool_uses')
  const ids = tool_uses.map(({ tool_use_id }) => tool_use_id)
  return requestOpened('permission', event['request_id'], ids, { tool_uses })
}

function decision({ request_id, decided_by, ...fields }: Fields): readonly [string, Fields] {
  const { tool_use_id, input_hash, behavior, updated_input, message } = fields
  if (decided_by === 'superseded')
    return requestClosed('permission', request_id, [tool_use_id], reasonIn(message), message)
  const storedDecision = {
    tool_use_id,
    input_hash,
    behavior,
    ...(updated_input !== undefined && { updated_input }),
    ...(message !== undefined && { message }),
  }
  const by = decided_by === 'callback' ? 'mode' : decided_by
  return requestAnswered('permission', request_id, [tool_use_id], { decisions: [storedDecision] }, by)
}

/** Recognises the beginnings of the messages that earlier versions wrote. */
function reasonIn(message: unknown): string {
  const text = String(message)
  if (text.startsWith('superseded: ') || text.startsWith('interrupted: the user wrote')) return 'message'
  if (text.startsWith('The server stopped ')) return 'server_restart'
  return text.startsWith('This conversation was forked') ? 'forked' : 'interrupted'
}

function networkDecision({ request_id, behavior, decided_by }: Fields): readonly [string, Fields] {
  if (decided_by === 'user' || decided_by === 'policy')
    return requestAnswered('network', request_id, [], { behavior }, decided_by)
  if (decided_by !== 'timeout' && decided_by !== 'server_restart') throw new TypeError('decided_by is not known.')
  return requestClosed('network', request_id, [], decided_by)
}

const requestOpened = (kind: string, request_id: unknown, tool_use_ids: readonly unknown[], payload: Fields) =>
  ['RequestOpened', { kind, request_id, tool_use_ids, payload }] as const

const requestAnswered = (
  kind: string,
  request_id: unknown,
  tool_use_ids: readonly unknown[],
  answer: Fields,
  answered_by: unknown = 'user',
) => ['RequestAnswered', { kind, request_id, tool_use_ids, answer, answered_by }] as const

const requestClosed = (
  kind: string,
  request_id: unknown,
  tool_use_ids: readonly unknown[],
  reason: unknown,
  message?: unknown,
) => ['RequestClosed', { kind, request_id, tool_use_ids, reason, ...(message !== undefined && { message }) }] as const

/** Logs are read again and again: only what the readers of events cannot do without is checked. */
function listIn(event: Fields, name: string): readonly Fields[] {
  const list = event[name]
  const isList = Array.isArray(list) && list.every((item) => typeof item === 'object' && item !== null)
  if (!isList) throw new TypeError(`${name} is not a list of objects.`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked above
  return list as Fields[]
}

/** Calls of client tools had no request: the same id for the call and for its result. */
function requestOfCall({ conversation_id, tool_use_id }: Fields): string {
  const hash = createHash('sha256')
    .update(`${String(conversation_id)} ${String(tool_use_id)}`)
    .digest('hex')
  const [a, b, c, d] = [hash.slice(0, 8), hash.slice(8, 12), hash.slice(13, 16), hash.slice(17, 20)]
  return `${a}-${b}-8${c}-8${d}-${hash.slice(20, 32)}`
}
