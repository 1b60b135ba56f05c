/** What a hook answers, as JSON: that of Claude Code's hooks. The same for commands, URLs, clients and functions. */
import { z } from 'zod'

const Input = z.record(z.string(), z.unknown().describe('A JSON value.'))

const SpecificOutput = z
  .object({
    hookEventName: z.string().optional().describe('The point. Another one than that of the request is refused.'),
    permissionDecision: z.enum(['allow', 'deny', 'ask', 'defer']).optional(),
    permissionDecisionReason: z.string().optional(),
    updatedInput: Input.optional().describe('Replaces the whole input of the call.'),
    additionalContext: z.string().optional().describe('For the model.'),
    updatedToolOutput: z.unknown().optional().describe('Replaces the output of the call.'),
    updatedMCPToolOutput: z.unknown().optional().describe('The same, by its older name.'),
    updatedMessages: z.unknown().optional().describe('At `PreModelCall`, with `enable_message_rewrite_hooks`.'),
    updatedText: z.string().optional().describe('At `PostModelCall`, with `enable_message_rewrite_hooks`.'),
    retry: z.boolean().optional().describe('At `PermissionDenied`: tells the model that it may try the call again.'),
    decision: z
      .object({
        behavior: z.enum(['allow', 'deny']),
        updatedInput: Input.optional(),
        message: z.string().optional(),
        interrupt: z.boolean().optional(),
      })
      .optional()
      .describe('At `PermissionRequest`.'),
  })
  .meta({ id: 'HookSpecificOutput' })
export type SpecificOutput = z.infer<typeof SpecificOutput>

export const HookOutput = z
  .object({
    continue: z.boolean().optional().describe('`false` ends the run.'),
    stopReason: z.string().optional(),
    suppressOutput: z.boolean().optional(),
    systemMessage: z.string().optional(),
    decision: z.enum(['approve', 'block']).optional(),
    reason: z.string().optional(),
    hookSpecificOutput: SpecificOutput.optional(),
  })
  .meta({ id: 'HookOutput' })
export type HookOutput = z.infer<typeof HookOutput>
