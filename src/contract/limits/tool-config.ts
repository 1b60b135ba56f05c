/** Limits of single tools that a conversation may set, each within what the server allows anyway. */
import { z } from 'zod'

/** Less would leave no room for what says that there is more. */
const MIN_OUTPUT_CHARS = 1000
/** A page ends with a note that its content is untrusted, and with the prompt. */
const MIN_WEB_CHARS = 4000

const output = (most: number, least: number) =>
  z
    .int()
    .min(least)
    .max(most)
    .optional()
    .describe(`Characters of output that the agent is shown per call, from ${least} to ${most}.`)

const OutputLimit = (most: number) => z.strictObject({ max_output_chars: output(most, MIN_OUTPUT_CHARS) }).optional()

const CallLimits = (seconds: number, most: number, least = MIN_OUTPUT_CHARS) =>
  z
    .strictObject({
      timeout_s: z
        .number()
        .positive()
        .max(seconds)
        .optional()
        .describe(`Seconds that a call may take; at most ${seconds}.`),
      max_output_chars: output(most, least),
    })
    .optional()

const DAY_S = 86_400

export const ToolConfig = z
  .strictObject({
    Bash: CallLimits(DAY_S, 1_000_000),
    BashOutput: OutputLimit(60_000),
    Read: OutputLimit(100_000),
    FileEditor: OutputLimit(32_000),
    Glob: CallLimits(30, 60_000),
    Grep: CallLimits(30, 60_000),
    WebFetch: CallLimits(30, 60_000, MIN_WEB_CHARS),
    WebSearch: CallLimits(30, 60_000, MIN_WEB_CHARS),
  })
  .describe('Limits of single tools, by the name of the tool. A tool without an entry has those of the server.')
  .meta({
    id: 'ToolConfig',
    examples: [{ Bash: { timeout_s: 30, max_output_chars: 10_000 }, Read: { max_output_chars: 20_000 } }],
  })
export type ToolConfig = z.infer<typeof ToolConfig>

export type ToolLimits = { readonly timeout_s?: number | undefined; readonly max_output_chars?: number | undefined }

export function limitsIn(config: ToolConfig | undefined, tool: string): ToolLimits | undefined {
  return config && new Map<string, ToolLimits | undefined>(Object.entries(config)).get(tool)
}

/** Names that exist at a path of a request: of tools in `tool_config`, or of the limits of one of them. */
export function namesInToolConfig([field, tool, ...rest]: readonly PropertyKey[]): readonly string[] {
  if (field !== 'tool_config' || rest.length > 0) return []
  if (tool === undefined) return Object.keys(ToolConfig.shape)
  const entry = Object.entries(ToolConfig.shape).find(([name]) => name === tool)?.[1]
  return entry ? Object.keys(entry.unwrap().shape) : []
}
