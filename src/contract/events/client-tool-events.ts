/** The events of tools that clients execute: a call that waits for a client, and what the client sent. */
import { z } from 'zod'
import { byEnvironment, byUser, Envelope, InRun, InSubagent } from './envelope.ts'

export const ClientToolCall = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('ClientToolCall'),
  tool_use_id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()).describe('The input to execute, as hooks and decisions left it.'),
  deadline: z.iso.datetime().describe('When the model gets an error instead, if no client has answered.'),
})
  .meta({ id: 'ClientToolCall' })
  .describe(
    'A client must execute this call and post its result. The `ToolResult` of the call ends it, with or without a `ClientToolResult`.',
  )

export const ClientToolResult = Envelope.extend({
  ...byUser,
  ...InRun,
  ...InSubagent,
  type: z.literal('ClientToolResult'),
  tool_use_id: z.string(),
  output: z.unknown().describe('As the client sent it, with secrets redacted.'),
  is_error: z.boolean(),
})
  .meta({ id: 'ClientToolResult' })
  .describe('What a client sent for a `ClientToolCall`. The `ToolResult` follows, after hooks.')
