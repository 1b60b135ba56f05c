/**
 * Events that are published live and never stored: the text of a message while it is written, the output of a command
 * while it runs.
 */
import { z } from 'zod'
import { InRun, InSubagent } from './envelope.ts'

const Transient = z.object({ conversation_id: z.uuid(), timestamp: z.iso.datetime(), ...InRun, ...InSubagent })

export const AssistantDelta = Transient.extend({
  type: z.literal('AssistantDelta'),
  message_id: z.uuid(),
  index: z.int().nonnegative().describe('For tool input: index of the call. Otherwise 0.'),
  offset: z.int().nonnegative().describe('Offset in all text, all reasoning or the input of the call, UTF-16 units.'),
  text_delta: z.string().optional(),
  reasoning_delta: z.string().optional(),
  tool_input_delta: z.string().optional(),
  tool_use_id: z
    .string()
    .optional()
    .describe('With `tool_input_delta`: the id that the `ToolUse` event of this call will have.'),
  tool_name: z
    .string()
    .optional()
    .describe('With `tool_input_delta`: the name of the tool, once it has been received.'),
}).meta({ id: 'AssistantDelta' })
export type AssistantDelta = z.infer<typeof AssistantDelta>

const AssistantAborted = Transient.extend({
  type: z.literal('AssistantAborted'),
  message_id: z.uuid().describe('A failed attempt. Discard its deltas.'),
}).meta({ id: 'AssistantAborted' })

const ToolOutputDelta = Transient.extend({
  type: z.literal('ToolOutputDelta'),
  tool_use_id: z.string().optional().describe('The tool call of the agent that wrote it,'),
  command_id: z.uuid().optional().describe('or the command of a client.'),
  stream: z.enum(['stdout', 'stderr']),
  offset: z.int().nonnegative().describe('Offset of this text in the stream, bytes.'),
  text: z.string(),
}).meta({ id: 'ToolOutputDelta' })
type ToolOutputDelta = z.infer<typeof ToolOutputDelta>

/** Published live to readers with `deltas`; without `seq`, never stored, never replayed. */
export const TransientEvent = z
  .discriminatedUnion('type', [AssistantDelta, AssistantAborted, ToolOutputDelta])
  .meta({ id: 'TransientEvent' })
export type TransientEvent = z.infer<typeof TransientEvent>
export type TransientDraft = {
  [T in TransientEvent['type']]: Omit<Extract<TransientEvent, { type: T }>, 'conversation_id' | 'timestamp'>
}[TransientEvent['type']]
export const TRANSIENT_TYPES = TransientEvent.options.map((option) => option.shape.type.value)
