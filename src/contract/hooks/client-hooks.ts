/** Hooks that clients answer: how a client registers them, what it is asked, and what it answers. */
import { z } from 'zod'
import { HookPoint } from './hook-point.ts'
import { HookOutput } from './hook-output.ts'
import { atPoints, countHooks, groupsOf, MAX_HOOKS, OfEachHook } from './hooks.ts'

/** The clients with hooks of one conversation. */
export const MAX_HOOK_CLIENTS = 20
const MAX_ID_CHARS = 200
const MAX_ERROR_CHARS = 10_000

const ClientHook = z
  .strictObject({
    id: z
      .string()
      .min(1)
      .max(MAX_ID_CHARS)
      .describe('Chosen by the client, which is asked by it. Unique at each point.'),
    ...OfEachHook,
  })
  .meta({ id: 'ClientHook' })

const ClientHookPoints = atPoints(groupsOf(ClientHook, 'ClientHookGroup'))
  .refine((hooks) => countHooks(hooks) <= MAX_HOOKS, { error: `has more than ${MAX_HOOKS} hooks` })
  .superRefine((hooks, context) => {
    for (const [point, groups = []] of Object.entries(hooks)) {
      const ids = groups.flatMap((group) => group.hooks.map(({ id }) => id))
      if (new Set(ids).size < ids.length)
        context.addIssue({ code: 'custom', path: [point], message: 'two hooks have the same id' })
    }
  })
  .meta({ id: 'ClientHookPoints' })
export type ClientHookPoints = z.infer<typeof ClientHookPoints>

export const HookClientName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, {
    error: 'must have 1 to 64 letters, digits, "-", "_" or ".", and begin with a letter or a digit',
  })
  .describe('The name of the client that answers these hooks, chosen by it.')

export const PutClientHooks = z
  .strictObject({ hooks: ClientHookPoints.describe('All hooks of this client, by point.') })
  .meta({
    id: 'PutClientHooks',
    examples: [{ hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ id: 'no-removals', timeout: 10 }] }] } }],
  })
export type PutClientHooks = z.infer<typeof PutClientHooks>

/** The stored hooks, by the name of the client. */
export const StoredClientHooks = z.record(
  z.string(),
  z.object({ hooks: ClientHookPoints, registered_at: z.iso.datetime() }),
)
export type StoredClientHooks = z.infer<typeof StoredClientHooks>

export const ClientHooksView = z
  .object({
    client: z.string(),
    hooks: ClientHookPoints,
    registered_at: z.iso.datetime(),
    connected: z.boolean().describe('Whether a stream or a WebSocket with this `hook_client` is open.'),
    calls_waiting: z
      .int()
      .describe('Calls in the background (`FileChanged`, `TaskCompleted`, `Notification`) that have not ended.'),
  })
  .meta({ id: 'ClientHooksView' })
export type ClientHooksView = z.infer<typeof ClientHooksView>

export const ClientHooksList = z.object({ items: z.array(ClientHooksView) }).meta({ id: 'ClientHooksList' })

const OfConversation = { conversation_id: z.uuid(), timestamp: z.iso.datetime() }

export const HookRequest = z
  .object({
    type: z.literal('HookRequest'),
    ...OfConversation,
    request_id: z.uuid(),
    client: z.string(),
    hook_id: z.string(),
    hook_point: HookPoint,
    payload: z
      .record(z.string(), z.unknown().describe('A JSON value.'))
      .describe('What a command hook reads on its standard input.'),
    deadline: z.iso.datetime().describe('When the hook counts as failed, if no client has answered.'),
  })
  .meta({ id: 'HookRequest' })
  .describe(
    'The client that registered this hook must answer. Sent live to streams with its `hook_client`, and again to each that connects while it waits; never stored.',
  )
export type HookRequest = z.infer<typeof HookRequest>

export const HookRequestEnded = z
  .object({
    type: z.literal('HookRequestEnded'),
    ...OfConversation,
    request_id: z.uuid(),
    client: z.string(),
    reason: z.enum(['answered', 'timeout', 'interrupted', 'removed']),
  })
  .meta({ id: 'HookRequestEnded' })
  .describe('Nobody waits for the answer to this `HookRequest` any more. Sent live to the same streams.')
export type HookRequestEnded = z.infer<typeof HookRequestEnded>

export type HookFrame = HookRequest | HookRequestEnded

/** One of the three. */
export const PostHookAnswer = z.strictObject({
  output: HookOutput.optional().describe(
    'What a command hook writes to its standard output as JSON. `{}` continues unchanged.',
  ),
  text: z.string().optional().describe('What a command hook writes as text: context at some points.'),
  error: z.string().min(1).max(MAX_ERROR_CHARS).optional().describe('The hook has failed; this says why.'),
})
