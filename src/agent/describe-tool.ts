/** Describes a tool to a model: its name, its description, and its input as a JSON Schema. */
import { toJSONSchema } from 'zod'
import type { ModelTool } from '../llm/llm.ts'
import type { Tool } from '../tools/tool.ts'

/** Converts the MCP form to the form for models. */
export function describeTool(tool: Tool): ModelTool {
  let inputSchema = inputSchemas.get(tool.input)
  if (!inputSchema) {
    const { $schema: _, ...schema } = toJSONSchema(tool.input, { io: 'input' })
    inputSchemas.set(tool.input, (inputSchema = schema))
  }
  return { name: tool.name, description: tool.description, inputSchema }
}

// Created once for all conversations: it is a tenth of the cost of creating a conversation, and some KB for each.
const inputSchemas = new WeakMap<Tool['input'], ModelTool['inputSchema']>()
