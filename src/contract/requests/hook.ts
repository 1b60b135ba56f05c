/** Hooks that a client answers. In memory only. */
import { z } from 'zod'
import { PostHookAnswer } from '../hooks/client-hooks.ts'
import { HookPoint } from '../hooks/hook-point.ts'
import type { KindOfRequest } from './kind.ts'

const Hook = z.object({
  client: z.string().describe('The client that must answer.'),
  hook_id: z.string(),
  hook_point: HookPoint,
  input: z
    .record(z.string(), z.unknown().describe('A JSON value.'))
    .optional()
    .describe('What a command hook reads on its standard input. Only in lists for this client: with `client`.'),
})

export const hookKind = {
  name: 'Hook',
  about: 'a client answers a hook',
  scope: 'approve',
  waits: 'elsewhere',
  who: 'The client that has registered the hook answers',
  form: { is: 'program', title: { english: 'Waits for a program', german: 'Wartet auf ein Programm' } },
  payload: Hook,
  answer: PostHookAnswer.shape,
  example: { output: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } } },
  asks: ({ client, hook_id, hook_point }: z.infer<typeof Hook>) =>
    `waits for the client ${client}, which has the hook ${hook_id} (${hook_point})`,
} as const satisfies KindOfRequest
