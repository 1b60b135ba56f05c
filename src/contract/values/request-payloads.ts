/** What a request of each kind asks. */
import { z } from 'zod'
import type { RequestKind } from './request-kinds.ts'
import { NetworkTarget } from './network.ts'
import { AskedToolUse } from './permission.ts'
import { AskedQuestion } from './question.ts'

export const Json = z.record(z.string(), z.unknown().describe('A JSON value.'))

/** By kind. Hooks of clients are not here: they are only in memory. */
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
