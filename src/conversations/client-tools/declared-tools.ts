/** The client tools of a conversation as the agent calls them. The configuration may change them at any time. */
import { z } from 'zod'
import type { ChangingTools } from '../../agent/describe-tool.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { DEFAULT_CLIENT_TOOL_TIMEOUT_S } from '../../contract/client-tools/client-tool.ts'
import { outcomeOf } from '../../state/client-outcome.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import type { Tool, ToolContext } from '../../tools/tool.ts'
import { hashDefinition, refuseChanged } from '../../tools/tool-definition.ts'
import type { LiveState } from '../live-state.ts'
import type { HeldRequests } from '../requests/held-requests.ts'

/** The client checks the input: its schema is not evaluated here. */
const AnyInput = z.record(z.string(), z.unknown())

export class DeclaredTools implements ChangingTools {
  readonly #state: LiveState
  readonly #calls: Pick<HeldRequests<'client_tool'>, 'hold'>
  #made: readonly ClientTool[] | undefined
  #tools: readonly Tool[] = []

  constructor(state: LiveState, calls: Pick<HeldRequests<'client_tool'>, 'hold'>) {
    this.#state = state
    this.#calls = calls
  }

  get listed(): readonly Tool[] {
    const { client_tools: declared } = this.#state.current.settings
    if (declared !== this.#made) {
      this.#made = declared
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the input is parsed before `run`
      this.#tools = (declared ?? []).map((tool) => this.#create(tool) as Tool)
    }
    return this.#tools
  }

  readonly find = (name: string): Tool | undefined => this.listed.find((tool) => tool.name === name)

  #create(tool: ClientTool): Tool<Record<string, unknown>> {
    const { $schema: _, ...inputSchema } = tool.input_schema
    const { name, description } = tool
    let hash: string | undefined
    const made: Tool<Record<string, unknown>> = {
      name,
      description,
      inputSchema,
      input: AnyInput,
      get definitionHash() {
        return (hash ??= hashDefinition({ name, description, inputSchema }))
      },
      run: async (input, context) => refuseChanged(made, context) ?? (await this.#handOver(tool, input, context)),
    }
    return made
  }

  /** A client executes the call. Rejects if the call could not be stored. */
  async #handOver(
    { name, timeout = DEFAULT_CLIENT_TOOL_TIMEOUT_S }: ClientTool,
    input: Record<string, unknown>,
    { toolUseId, signal }: ToolContext,
  ): Promise<ToolOutcome> {
    const end = await this.#calls.hold({ toolUseId, payload: { name, input }, timeoutMs: timeout * 1000, signal })
    if (end.by === 'answer') return outcomeOf({ output: end.answer.output, isError: end.answer.is_error })
    const message =
      end.by === 'timeout'
        ? `No client sent a result of ${name} within ${timeout} s. It is not known what it did.`
        : 'The call was interrupted. The client may have executed it.'
    return { output: message, error: { type: end.by, message } }
  }
}

/** Both together, those of the first first. */
export function joinTools(first: ChangingTools, second: ChangingTools): ChangingTools {
  let [ofFirst, ofSecond, all]: [readonly Tool[], readonly Tool[], readonly Tool[]] = [[], [], []]
  return {
    get listed() {
      if (first.listed !== ofFirst || second.listed !== ofSecond) {
        ;[ofFirst, ofSecond] = [first.listed, second.listed]
        all = ofFirst.length > 0 ? [...ofFirst, ...ofSecond] : ofSecond
      }
      return all
    },
    find: (name) => second.find(name) ?? first.find(name),
    get prepare() {
      return first.prepare
    },
  }
}
