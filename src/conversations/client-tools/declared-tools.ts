/** The client tools of a conversation as the agent calls them. The configuration may change them at any time. */
import { z } from 'zod'
import type { ChangingTools } from '../../agent/describe-tool.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import type { Tool } from '../../tools/tool.ts'
import { hashDefinition, refuseChanged } from '../../tools/tool-definition.ts'
import type { LiveState } from '../live/live-state.ts'
import type { HandedOverCalls } from './handed-over-calls.ts'

/** The client checks the input: its schema is not evaluated here. */
const AnyInput = z.record(z.string(), z.unknown())

export class DeclaredTools implements ChangingTools {
  readonly #state: LiveState
  readonly #calls: HandedOverCalls
  #clientTools: readonly ClientTool[] | undefined
  #tools: readonly Tool[] = []

  constructor(state: LiveState, calls: HandedOverCalls) {
    this.#state = state
    this.#calls = calls
  }

  get listed(): readonly Tool[] {
    const { client_tools: declaredTools } = this.#state.current.settings
    if (declaredTools !== this.#clientTools) {
      this.#clientTools = declaredTools
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the input is parsed before `run`
      this.#tools = (declaredTools ?? []).map((tool) => this.#create(tool) as Tool)
    }
    return this.#tools
  }

  /** Finds also a tool that is not declared any more while a client executes a call of it. */
  readonly find = (name: string): Tool | undefined =>
    this.listed.find((tool) => tool.name === name) ??
    (this.#calls.areOf(name) ? this.#create({ name, description: '', input_schema: {} }) : undefined)

  #create(tool: ClientTool): Tool<Record<string, unknown>> {
    const { $schema: _, ...inputSchema } = tool.input_schema
    const { name, description } = tool
    let hash: string | undefined
    const createdTool: Tool<Record<string, unknown>> = {
      name,
      description,
      inputSchema,
      input: AnyInput,
      get definitionHash() {
        return (hash ??= hashDefinition({ name, description, inputSchema }))
      },
      run: async (input, context) => {
        const isHere = this.#calls.isHandedOver(context.toolUseId)
        return (
          (isHere ? undefined : refuseChanged(createdTool, context)) ??
          (await this.#calls.handOver(tool, { ...context, input }))
        )
      },
    }
    return createdTool
  }
}
