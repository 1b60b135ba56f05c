/** Tools that clients execute: how they are declared, listed while they wait, and answered. */
import { z } from 'zod'

const MAX_CLIENT_TOOLS = 128

/** 30 days. */
const MAX_TIMEOUT_S = 30 * 24 * 60 * 60
const MAX_DESCRIPTION_CHARS = 8192
const MAX_SCHEMA_CHARS = 32 * 1024
/** Deeper schemas are refused by model providers, and with them the whole request. */
const MAX_SCHEMA_DEPTH = 24

const InputSchema = z
  .record(z.string(), z.unknown())
  .refine((schema) => schema['type'] === 'object', { error: 'must have the type object' })
  .refine((schema) => JSON.stringify(schema).length <= MAX_SCHEMA_CHARS, {
    error: `has more than ${MAX_SCHEMA_CHARS} characters as JSON`,
  })
  .refine((schema) => !isDeeper(schema, MAX_SCHEMA_DEPTH), { error: `has more than ${MAX_SCHEMA_DEPTH} levels` })
  .describe('JSON Schema of the input. The model follows it; the client checks the input.')

export const ClientTool = z
  .strictObject({
    name: z
      .string()
      .regex(/^(?!mcp__)[A-Za-z0-9_-]{1,64}$/, {
        error: 'must have 1 to 64 letters, digits, "-" or "_", and not begin with mcp__',
      })
      .describe('1 to 64 letters, digits, `-` or `_`. Not the name of a tool of the server.'),
    description: z
      .string()
      .max(MAX_DESCRIPTION_CHARS)
      .describe('For the model: what the tool does, and when to use it.'),
    input_schema: InputSchema,
    timeout: z
      .number()
      .positive()
      .max(MAX_TIMEOUT_S)
      .optional()
      .describe(
        'Seconds that a call waits for its result, also while the server is stopped. Then the model gets an error. Default: no limit.',
      ),
  })
  .meta({
    id: 'ClientTool',
    examples: [
      {
        name: 'look_up_order',
        description: 'Returns an order by its number.',
        input_schema: { type: 'object', properties: { number: { type: 'string' } }, required: ['number'] },
        timeout: 60,
      },
    ],
  })

/** The tool as it is stored and shown: redacted texts may be longer than those that are accepted. */
export const StoredClientTool = z
  .object({
    name: z.string(),
    description: z.string(),
    input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the input.'),
    timeout: z.number().optional(),
  })
  .meta({ id: 'ClientToolView' })
export type ClientTool = z.infer<typeof StoredClientTool>

export const ClientTools = z
  .array(ClientTool)
  .max(MAX_CLIENT_TOOLS)
  .refine((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, {
    error: 'two tools have the same name',
  })
  .describe('Tools that clients execute: each call is a request of the kind `client_tool`, which a client answers.')

export const PostToolResult = z.strictObject({
  output: z
    .unknown()
    .refine((output) => output !== undefined, { error: 'is required' })
    .describe('What the model reads: text, a list of text and image parts, or any other JSON value.'),
  is_error: z.boolean().default(false).describe('Whether the call failed. Then `output` says why.'),
})

/** True if a JSON value has more than `depth` levels of objects and lists. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((each) => isDeeper(each, depth - 1))
}
