/** The kinds of requests to the outside, and the scope that a key needs to answer each. */
import { z } from 'zod'

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
