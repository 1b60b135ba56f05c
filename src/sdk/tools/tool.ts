/** `tool()`: a tool that the program executes, which the agent calls like any other. */
import type { z } from 'zod'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { invalid } from '../errors/invalid.ts'
import { jsonSchemaOf, objectOf } from './schema.ts'

export type ToolCallContext = {
  /** Aborts when nobody waits for the result any more: after a timeout, an interrupt, or at the end of the query. */
  readonly signal: AbortSignal
  readonly sessionId: string
  readonly toolUseId: string
}

/**
 * Returns what the agent reads: text, a list of text and image parts, a result of MCP (`{ content, isError }`), or any
 * other JSON value. A throw is an error result with the message of the error.
 */
export type ToolHandler<Input> = (input: Input, context: ToolCallContext) => unknown

export type ToolSettings = {
  /** Seconds that a call may take. Default: no limit. */
  readonly timeoutS?: number | undefined
}

export type SdkTool<Shape extends z.ZodRawShape> = {
  readonly declaration: ClientTool
  readonly schema: z.ZodObject<Shape>
  readonly handler: ToolHandler<z.output<z.ZodObject<Shape>>>
}

/** A tool whose input is checked before its handler is called. */
export type AnySdkTool = {
  readonly declaration: ClientTool
  readonly schema: z.ZodType
  // oxlint-disable-next-line typescript/no-explicit-any -- the input of each tool has another type
  readonly handler: ToolHandler<any>
}

/** `shape` are the parameters: the fields of a zod object, or the object. Throws for a schema that JSON Schema cannot say. */
export function tool<const Shape extends z.ZodRawShape>(
  name: string,
  description: string,
  shape: Shape | z.ZodObject<Shape>,
  handler: ToolHandler<z.output<z.ZodObject<Shape>>>,
  { timeoutS }: ToolSettings = {},
): SdkTool<Shape> {
  if (typeof handler !== 'function') throw invalid(`The handler of tool ${name} is not a function.`)
  const schema = objectOf<Shape>(shape, `tool ${name}`)
  const input_schema = jsonSchemaOf(schema, `tool ${name}`)
  return {
    declaration: { name, description, input_schema, ...(timeoutS !== undefined && { timeout: timeoutS }) },
    schema,
    handler,
  }
}
