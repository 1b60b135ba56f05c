/** The event of a hook that was called. */
import { z } from 'zod'
import { HookPoint } from '../hooks/hook-point.ts'
import { byEnvironment, Envelope, InRun, InSubagent } from './envelope.ts'

export const HookEvent = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('HookEvent'),
  hook_point: HookPoint,
  name: z.string().describe('The command or the URL of the hook, or the id that its client chose.'),
  matched: z.boolean().describe('Always true: a hook whose matcher does not fit is not called, and leaves no event.'),
  duration_ms: z.number().nonnegative(),
  action: z
    .enum(['continue', 'block', 'rewrite', 'error'])
    .describe('`error`: it timed out, crashed, or gave an answer that cannot be read.'),
  message: z.string().optional().describe('Its reason, its warning, or what went wrong.'),
  tool_use_id: z.string().optional(),
  decision: z.enum(['allow', 'ask', 'deny']).optional().describe('What it decided about the call.'),
  updated_input: z.unknown().optional().describe('The input that the call has from here on.'),
  context: z.string().optional().describe('What the model reads because of it.'),
  hooks_seq: z
    .int()
    .optional()
    .describe(
      'Seq of the `ConfigUpdate` that set this hook; absent for hooks of the creation. A verdict of hooks that were replaced before it was stored does not count.',
    ),
})
  .meta({ id: 'HookEvent' })
  .describe('A hook was called.')
