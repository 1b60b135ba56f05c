/** The kinds of requests to the outside: the scope that a key needs to answer each, and what a request asks. */
import { z } from 'zod'
import { NetworkTarget } from './network.ts'
import { AskedToolUse } from './permission.ts'
import { AskedQuestion } from './question.ts'

/** A kind without a scope is a type error where requests are defined. */
export const ANSWER_SCOPES = {
  permission: 'approve',
  question: 'write',
  elicitation: 'write',
  client_tool: 'write',
  network: 'approve',
  hook: 'approve',
} as const satisfies Record<string, 'approve' | 'write'>

export type RequestKind = keyof typeof ANSWER_SCOPES

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const REQUEST_KINDS = Object.keys(ANSWER_SCOPES) as [RequestKind, ...RequestKind[]]

export const RequestKindName = z
  .enum(REQUEST_KINDS)
  .meta({ id: 'RequestKind' })
  .describe(
    '`permission`: calls need a decision. `question`: the agent asks the user. `elicitation`: an MCP server asks the user while a call runs. `client_tool`: a client executes a call. `network`: a command wants to reach a host. `hook`: a client answers a hook.',
  )

export const Json = z.record(z.string(), z.unknown().describe('A JSON value.'))

/** The payloads by kind. Hooks of clients are not here: they are only in memory. */
export const STORED_PAYLOADS = {
  permission: z.object({ tool_uses: z.array(AskedToolUse) }),
  question: z.object({ questions: z.array(AskedQuestion) }),
  elicitation: z.object({
    server: z.string().describe('The name of the MCP server that asks.'),
    questions: z.array(AskedQuestion),
  }),
  client_tool: z.object({
    name: z.string(),
    input: Json.describe('The input to execute, as hooks and decisions left it.'),
  }),
  network: z.object(NetworkTarget),
} satisfies Record<Exclude<RequestKind, 'hook'>, z.ZodType>

/** The kinds that the log has. */
export type StoredKind = keyof typeof STORED_PAYLOADS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const STORED_KINDS = Object.keys(STORED_PAYLOADS) as [StoredKind, ...StoredKind[]]

/** Fields of every request, in events and in lists. */
export const OfRequest = {
  request_id: z.uuid(),
  deadline: z.iso.datetime().optional().describe('When it is closed without an answer. Absent: never.'),
  tool_use_ids: z.array(z.string()).describe('The tool calls that wait for it. The results of all of them end it too.'),
}
