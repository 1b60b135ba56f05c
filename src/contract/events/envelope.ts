/** What all events share: the envelope, and the fields that identify their origin. */
import { z } from 'zod'

/** A part of an event that a reader receives only in part, because it asked for `max_text`. */
const CutText = z
  .object({
    pointer: z.string().describe('JSON Pointer to it: read it with `GET …/events/{event_id}/part?pointer=`.'),
    characters: z.int().positive().describe('Length of the whole, in UTF-16 code units; of an image in base64.'),
    media_type: z.string().optional().describe('Of an image. Its `data` is empty.'),
  })
  .meta({ id: 'CutText' })
export type CutText = z.infer<typeof CutText>

export const Envelope = z.object({
  id: z.uuid().describe('UUIDv7.'),
  seq: z.int().positive().describe('Position in the conversation, from 1, without gaps. The cursor of all readers.'),
  timestamp: z.iso.datetime(),
  conversation_id: z.uuid(),
  version: z
    .int()
    .positive()
    .describe(
      'Schema version of the event: 5 for rewinds, 4 for withdrawn messages, 3 for requests, 2 for permission modes, permission rules and compactions, otherwise 1.',
    ),
  cut_texts: z.array(CutText).optional().describe('What `max_text` has cut. Never stored.'),
})

export const InRun = { run_id: z.uuid().optional() }
/** The idempotency key of the request. */
export const KeyFields = {
  idempotency_key: z.string().optional(),
  body_hash: z.string().optional().describe('Hash of the request body.'),
}
/** Absent for the main agent. */
export const InSubagent = {
  parent_tool_use_id: z.string().optional().describe('The `Task` call of the subagent that the event belongs to.'),
  agent_name: z.string().optional().describe('The name of that subagent.'),
}

export const byUser = { source: z.literal('user') }
export const byAgent = { source: z.literal('agent') }
export const byEnvironment = { source: z.literal('environment') }
