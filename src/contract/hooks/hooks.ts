/**
 * Hooks on the wire: commands and URLs that are called at points of a run. The shape is that of `hooks` in the settings
 * of Claude Code.
 */
import { z } from 'zod'
import { CallbackHeaders, CallbackUrl } from '../values/callback-address.ts'
import { MAX_MATCHER_CHARS, readMatcher } from './matcher.ts'
import { MASK } from '../values/llm-config.ts'
import type { HookPoint } from './hook-point.ts'
import { HOOK_POINTS } from './hook-point.ts'

/** Seconds. */
const MAX_TIMEOUT = 600
export const DEFAULT_HOOK_TIMEOUT_S = 60
const MAX_COMMAND_CHARS = 10_000
const MAX_GROUPS = 50
export const MAX_HOOKS_IN_GROUP = 20

/** Maximum for a conversation, and for one client. */
export const MAX_HOOKS = 100

/** Fields of hooks of any type. */
export const OfEachHook = {
  timeout: z
    .number()
    .positive()
    .max(MAX_TIMEOUT)
    .optional()
    .describe(`Seconds until the hook is ended. Default: ${DEFAULT_HOOK_TIMEOUT_S}.`),
  on_failure: z
    .enum(['continue', 'block'])
    .optional()
    .describe(
      'What a timeout, a crash or an unreadable answer means. Default: `block` for `PreToolUse`, `PreModelCall` and `PreCompact`, otherwise `continue`.',
    ),
}

const ForCompatibility = {
  statusMessage: z.string().max(1000).optional().describe('Accepted for compatibility; not used.'),
}

const CommandHook = z
  .strictObject({
    type: z.literal('command'),
    command: z
      .string()
      .min(1)
      .max(MAX_COMMAND_CHARS)
      .describe('A command for bash. It runs in the sandbox and gets the payload as JSON on its standard input.'),
    ...OfEachHook,
    ...ForCompatibility,
  })
  .meta({ id: 'CommandHook' })
export type CommandHook = z.infer<typeof CommandHook>

const HookSecret = z
  .string()
  .regex(/^(whsec_[A-Za-z0-9+/]{32,88}={0,2}|\*{10})$/, {
    error: 'must be whsec_ followed by 24 to 64 bytes in base64',
  })
  .describe(
    'Signs the requests as those of callbacks (`whsec_…`). Encrypted at rest and returned masked. Without it they are not signed.',
  )

const HttpHook = z
  .strictObject({
    type: z.literal('http'),
    url: CallbackUrl.describe('Receives the payload as a POST request with a JSON body. The URL is not masked.'),
    secret: HookSecret.optional(),
    headers: CallbackHeaders.optional(),
    ...OfEachHook,
    ...ForCompatibility,
  })
  .meta({ id: 'HttpHook' })
export type HttpHook = z.infer<typeof HttpHook>

const Hook = z
  .discriminatedUnion('type', [CommandHook, HttpHook], { error: 'must be command or http' })
  .meta({ id: 'Hook' })
export type Hook = z.infer<typeof Hook>

const Matcher = z
  .string()
  .max(MAX_MATCHER_CHARS)
  .superRefine((text, context) => {
    const read = readMatcher(text)
    if ('fault' in read) context.addIssue({ code: 'custom', message: read.fault })
  })
  .describe(
    'Which calls the hook is for: a name, names separated by `|`, or a simple regular expression. `*`, empty or absent: all.',
  )

/** Groups of hooks of this type; `id` names one group in the description of the API. */
export const groupsOf = <H extends z.ZodType>(hook: H, id: string) =>
  z
    .array(
      z.strictObject({ matcher: Matcher.optional(), hooks: z.array(hook).min(1).max(MAX_HOOKS_IN_GROUP) }).meta({ id }),
    )
    .max(MAX_GROUPS)
    .optional()

/** Groups of hooks by point. */
export const atPoints = <Groups extends z.ZodType>(groups: Groups) =>
  z.strictObject({
    SessionStart: groups,
    SessionEnd: groups,
    UserPromptSubmit: groups,
    PreModelCall: groups,
    PostModelCall: groups,
    PreToolUse: groups,
    PostToolUse: groups,
    PostToolUseFailure: groups,
    PostToolBatch: groups,
    PermissionRequest: groups,
    PermissionDenied: groups,
    Stop: groups,
    StopFailure: groups,
    SubagentStart: groups,
    SubagentStop: groups,
    PreCompact: groups,
    PostCompact: groups,
    FileChanged: groups,
    TaskCompleted: groups,
    Notification: groups,
  } satisfies Record<HookPoint, Groups>)

export const countHooks = (hooks: object): number =>
  Object.values<readonly { hooks: readonly unknown[] }[] | undefined>({ ...hooks })
    .flatMap((groups) => groups ?? [])
    .reduce((sum, group) => sum + group.hooks.length, 0)

/**
 * Reads the `hooks` object of a `settings.json` of Claude Code, too: `Hooks.safeParse(json)`. The path of an issue
 * names the field.
 */
export const Hooks = atPoints(groupsOf(Hook, 'HookGroup'))
  .refine((hooks) => countHooks(hooks) <= MAX_HOOKS, { error: `has more than ${MAX_HOOKS} hooks` })
  .meta({
    id: 'Hooks',
    examples: [
      {
        PreToolUse: [
          { matcher: 'Bash', hooks: [{ type: 'command', command: 'python3 /opt/hooks/validate.py', timeout: 10 }] },
        ],
      },
    ],
  })
export type Hooks = z.infer<typeof Hooks>

export type PlacedHook = { readonly path: string; readonly hook: Hook; readonly matcher: string | undefined }

/** Every hook with the path of its field; `root` is the path of all of them. */
export function* eachHook(hooks: Hooks, root = 'hooks'): Generator<PlacedHook> {
  for (const point of HOOK_POINTS)
    for (const [at, group] of (hooks[point] ?? []).entries())
      for (const [index, hook] of group.hooks.entries())
        yield { path: `${root}.${point}.${at}.hooks.${index}`, hook, matcher: group.matcher }
}

/** The same hooks with masked secrets, as they are stored in the log and shown. */
export function maskHooks(hooks: Hooks): Hooks {
  const maskHook = (hook: Hook): Hook => {
    if (hook.type === 'command') return hook
    const headers =
      hook.headers && Object.fromEntries(Object.keys(hook.headers).map((name) => [name.toLowerCase(), MASK]))
    return { ...hook, ...(hook.secret !== undefined && { secret: MASK }), ...(headers && { headers }) }
  }
  const shownHooks: Hooks = {}
  for (const point of HOOK_POINTS) {
    const groups = hooks[point]
    if (groups) shownHooks[point] = groups.map((group) => ({ ...group, hooks: group.hooks.map(maskHook) }))
  }
  return shownHooks
}
