/** Describes a tool to a model: its name, its description, and its input as a JSON Schema. */
import { toJSONSchema } from 'zod'
import { lazilyForEach } from '../lib/lazily.ts'
import type { ModelTool } from '../llm/llm.ts'
import type { Tool } from '../tools/tool.ts'

/** Tools that come and go while the conversation is open: those of MCP servers and of clients. */
export type ChangingTools = {
  /** What model requests list, after the other tools. The same array until it changes. */
  readonly listed: readonly Tool[]
  readonly find: (name: string) => Tool | undefined
  /** Awaited at the start of each run; absent while there is nothing to wait for. Rejects only with the reason of the signal. */
  readonly prepare?: ((signal: AbortSignal) => Promise<void>) | undefined
}

type DescriberDeps = {
  readonly tools: readonly Tool[]
  readonly changing?: ChangingTools | undefined
  /** What a description may depend on: another object after each change. */
  readonly settings?: (() => object) | undefined
}

/** Describes the tools once, and again when those that change have changed, or the agents that one of them names. */
export function createDescriber({ tools, changing, settings }: DescriberDeps): () => readonly ModelTool[] {
  let fixedTools = tools.map(describeTool)
  const task = tools.find(({ callsSubagent }) => callsSubagent)
  if (!changing && !task) return () => fixedTools
  let agents = task?.description
  let seenSettings = settings?.()
  let [listedTools, all]: [readonly Tool[], readonly ModelTool[]] = [[], fixedTools]
  return () => {
    const current = settings?.()
    const now = {
      agents: current === undefined || current !== seenSettings ? task?.description : agents,
      listed: changing?.listed ?? listedTools,
    }
    if (now.agents !== agents) fixedTools = tools.map(describeTool)
    if (now.agents !== agents || now.listed !== listedTools) all = [...fixedTools, ...now.listed.map(describeTool)]
    ;({ agents, listed: listedTools } = now)
    seenSettings = current
    return all
  }
}

/** Converts the MCP form to the form for models. */
function describeTool(tool: Tool): ModelTool {
  const { name, description } = tool
  return { name, description, inputSchema: tool.inputSchema ?? schemaOf(tool.input) }
}

// Created once for all conversations: it is a tenth of the cost of creating a conversation, and some KB for each.
const schemaOf = lazilyForEach((input: Tool['input']): ModelTool['inputSchema'] => {
  const { $schema: _, ...schema } = toJSONSchema(input, { io: 'input' })
  return schema
})
