/** What a request of each kind asks. */
import { z } from 'zod'
import { NetworkTarget } from './network.ts'
import { AskedToolUse } from './permission.ts'
import { AskedQuestion } from './question.ts'

export const Json = z.record(z.string(), z.unknown().describe('A JSON value.'))

export const PermissionPayload = z.object({ tool_uses: z.array(AskedToolUse) })

export const QuestionPayload = z.object({ questions: z.array(AskedQuestion) })

export const ElicitationPayload = z.object({
  server: z.string().describe('The name of the MCP server that asks.'),
  questions: z.array(AskedQuestion),
})

export const ClientToolPayload = z.object({
  name: z.string(),
  input: Json.describe('The input to execute, as hooks and decisions left it.'),
})

export const NetworkPayload = z.object(NetworkTarget)

/** Fields of every request, in events and in lists. */
export const OfRequest = {
  request_id: z.uuid(),
  deadline: z.iso.datetime().optional().describe('When it is closed without an answer. Absent: never.'),
  tool_use_ids: z.array(z.string()).describe('The tool calls that wait for it. The results of all of them end it too.'),
}
