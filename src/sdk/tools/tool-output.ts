/** Reads what the handler of a tool returned. The only file that decides what of it the agent gets. */
import { z } from 'zod'

export type ToolOutput = { readonly output: unknown; readonly is_error?: boolean }

/** The length of an output as JSON. The agent reads at most 100,000 characters of text; images may be larger. */
const MAX_OUTPUT_CHARS = 6 * 1024 * 1024

const McpPart = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z
    .object({ type: z.literal('image'), data: z.string(), mimeType: z.string() })
    .transform(({ data, mimeType }) => ({ type: 'image' as const, media_type: mimeType, data })),
])
const McpResult = z.object({ content: z.array(McpPart).min(1), isError: z.boolean().optional() })

export const failedOutput = (why: string): ToolOutput => ({ output: why.slice(0, MAX_ERROR_CHARS), is_error: true })
const MAX_ERROR_CHARS = 10_000

/** Values that are not JSON are an error result, which says so. Throws what the value throws while it is read. */
export function readOutput(value: unknown): ToolOutput {
  if (value === undefined) return { output: '' }
  const mcp = McpResult.safeParse(value)
  const output: ToolOutput = mcp.success
    ? { output: mcp.data.content, ...(mcp.data.isError && { is_error: true }) }
    : { output: value }
  const json = jsonOf(output.output)
  if (json === undefined) return failedOutput('The tool returned a value that is not JSON.')
  if (json.length > MAX_OUTPUT_CHARS)
    return failedOutput(
      `The tool returned ${json.length} characters, and a result has at most ${MAX_OUTPUT_CHARS}. Return less of it.`,
    )
  return output
}

/** Undefined for functions and symbols. Throws for circular values, and those that have a `BigInt` in them. */
function jsonOf(value: unknown): string | undefined {
  if (typeof value === 'string' && value.length > MAX_OUTPUT_CHARS) return value
  try {
    // Its type leaves out that some values have no JSON.
    const json: string | undefined = JSON.stringify(value)
    return json
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'its toJSON throws'
    throw new TypeError(`The tool returned a value that is not JSON: ${why.split('\n', 1)[0]}`, { cause })
  }
}
