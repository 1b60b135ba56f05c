/** Calls of tools that need a decision. One request has all calls of a turn. */
import { z } from 'zod'
import { inputText } from '../values/output-text.ts'
import { AskedToolUse, Behavior, Decision, DecidePermission, Hash } from '../values/permission.ts'
import type { KindOfRequest } from './kind.ts'
import { logEntry, PERSON } from './kind.ts'

const Permission = z.object({ tool_uses: z.array(AskedToolUse) })

export const permissionKind = {
  name: 'Permission',
  about: 'calls need a decision',
  scope: 'approve',
  waits: 'waiting_for_confirmation',
  who: PERSON,
  form: { is: 'calls', title: { english: 'Permission', german: 'Erlaubnis' } },
  payload: Permission.extend({
    tool_uses: z.array(AskedToolUse.extend({ decision: Behavior.optional().describe('Absent while it waits.') })),
  }),
  answer: DecidePermission.shape,
  example: {
    decisions: [
      {
        tool_use_id: 'call_1',
        input_hash: '9f2c7e0d4b6a8150c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0',
        behavior: 'deny',
        message: 'Not in production.',
      },
    ],
  },
  ...logEntry({
    opened: Permission,
    answered: z.object({
      decisions: z.array(z.object({ tool_use_id: z.string(), input_hash: Hash, ...Decision.shape })),
    }),
    asks: ({ tool_uses: calls }) =>
      `waits for a decision: ${calls.map(({ name, input }) => `${name}: ${inputText(input)}`).join('; ')}`,
    says: ({ decisions }) => decisions.map(({ behavior, tool_use_id }) => `${behavior} ${tool_use_id}`).join(', '),
  }),
} as const satisfies KindOfRequest
