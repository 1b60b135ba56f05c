/** Permissions on the wire: modes, rules, the calls that wait, and decisions by id and content. */
import { z } from 'zod'

export const Hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('SHA-256 of the canonical JSON (RFC 8785) of {name, input}.')

export const DefinitionHash = z
  .string()
  .describe(
    'Hash of the definition of the tool, if it is one of an MCP server or of a client. If the definition is another one when the call begins, the call is denied.',
  )

export const AskedToolUse = z
  .object({
    tool_use_id: z.string(),
    name: z.string(),
    input: z.unknown().describe('The arguments of the call: an object, or text if the model sent no JSON object.'),
    input_hash: Hash,
    definition_hash: DefinitionHash.optional(),
    reason: z.string().describe('Why the call needs a decision.'),
    rules: z
      .array(z.string())
      .optional()
      .describe('The rules that `remember` adds. Absent if no rule says exactly this.'),
  })
  .meta({ id: 'AskedToolUse' })
export type AskedToolUse = z.infer<typeof AskedToolUse>

const PERMISSION_MODES = ['default', 'accept_edits', 'plan', 'bypass', 'deny', 'callback'] as const

export const PermissionMode = z
  .enum(PERMISSION_MODES)
  .describe(
    '`default`: ask before what can change something. `accept_edits`: do not ask about edits in the workdir. `plan`: deny what can change something. `bypass`: do not ask. `deny`: deny what `default` would ask about. `callback`: an approver decides; without one, as `deny`.',
  )
export type PermissionMode = z.infer<typeof PermissionMode>

export const PermissionModeInput = z
  .enum([...PERMISSION_MODES, 'prompt'])
  .describe(`${PermissionMode.description} \`prompt\` is another name of \`default\`.`)

/** `prompt` is another name. */
export const modeNamed = (mode: z.infer<typeof PermissionModeInput>): PermissionMode =>
  mode === 'prompt' ? 'default' : mode

export const MAX_RULES = 500
export const MAX_RULE_TEXT_CHARS = 1000
/** Its form only: what may be in the parentheses depends on the tool, and is read by the policy. */
const RuleText = z
  .string()
  .min(1)
  .max(MAX_RULE_TEXT_CHARS)
  .regex(/^\s*[A-Za-z0-9_*-]+(\([\s\S]*\))?\s*$/, {
    error: 'is not a rule; write Tool or Tool(pattern), for example Bash(git status:*)',
  })
  .meta({ id: 'PermissionRule', examples: ['Bash(git status:*)'] })
  .describe('A tool, or a tool with a pattern in parentheses: `Bash(git status:*)`, `Edit(src/**)`, `Read(~/.ssh/**)`.')
export const RuleTexts = z.array(RuleText).max(MAX_RULES)

const RULES = { allow: ['Bash(git status:*)', 'Edit(src/**)'], ask: ['Bash(git push:*)'], deny: ['Read(~/.ssh/**)'] }

export const PermissionRules = z
  .strictObject({
    allow: RuleTexts.default([]).describe('Calls that run without a question.'),
    ask: RuleTexts.default([]).describe('Calls that need a decision in every mode.'),
    deny: RuleTexts.default([]).describe('Calls that never run.'),
  })
  .meta({
    id: 'PermissionRules',
    examples: [RULES],
  })
export type PermissionRules = z.infer<typeof PermissionRules>

/** The rules as they are stored: one that a decision has added may be longer than one that is accepted. */
const StoredTexts = z.array(z.string()).max(MAX_RULES).default([])
export const StoredRules = z.strictObject({ allow: StoredTexts, ask: StoredTexts, deny: StoredTexts })

export const PermissionRulesView = PermissionRules.extend({
  project: PermissionRules.optional().describe(
    'Further rules, from the project settings of the conversation. They cannot be changed or removed: ignored in a request.',
  ),
  warnings: z
    .array(z.string())
    .optional()
    .describe('Rules that have no effect, after they were replaced. Ignored in a request.'),
}).meta({ id: 'PermissionRulesView', examples: [RULES] })
export type PermissionRulesView = z.infer<typeof PermissionRulesView>

export const Behavior = z.enum(['allow', 'deny'])
export type Behavior = z.infer<typeof Behavior>

/** The decision about one call. */
export const Decision = z.strictObject({
  behavior: Behavior,
  updated_input: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Input that runs instead, only with `allow`. The agent is informed.'),
  message: z.string().max(10_000).optional().describe('Reason of a denial, for the agent.'),
})
export type Decision = z.infer<typeof Decision>

export const ToolDecision = z
  .strictObject({
    tool_use_id: z.string().min(1),
    input_hash: Hash,
    ...Decision.shape,
    remember: z
      .boolean()
      .optional()
      .describe('Whether to add the `rules` of the call to the permission rules: as `allow` or `deny`, as decided.'),
  })
  .refine((decision) => decision.behavior === 'allow' || decision.updated_input === undefined, {
    error: 'updated_input can only be used with allow',
    path: ['updated_input'],
  })
  .meta({ id: 'ToolDecision' })
export type ToolDecision = z.infer<typeof ToolDecision>

export const DecidePermission = z.strictObject({ decisions: z.array(ToolDecision).min(1).max(1000) })

export const RejectRequest = z
  .strictObject({
    reason: z.string().min(1).max(10_000).optional().describe('Reason for the agent, which reads it in the next run.'),
  })
  .meta({ id: 'RejectRequest', examples: [{ reason: 'Ask me before you touch the database.' }] })

export const SetConfirmation = z
  .strictObject({
    enabled: z
      .boolean()
      .describe('Applies to every call that has not begun. Calls that already wait still need a decision.'),
  })
  .meta({ id: 'SetConfirmation', examples: [{ enabled: true }] })
