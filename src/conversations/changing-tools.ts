/** The tools of a conversation that its configuration may change at any time: those of MCP servers and of clients. */
import type { ChangingTools } from '../agent/describe-tool.ts'
import type { Tool } from '../tools/tool.ts'
import type { LiveState } from './live/live-state.ts'

const NONE: readonly Tool[] = []

export class ConversationTools implements ChangingTools {
  readonly #state: LiveState
  readonly #mcp: ChangingTools
  readonly #declared: ChangingTools
  #joined:
    | { readonly mcp: readonly Tool[]; readonly declared: readonly Tool[]; readonly all: readonly Tool[] }
    | undefined

  constructor(state: LiveState, { mcp, declared }: { readonly mcp: ChangingTools; readonly declared: ChangingTools }) {
    this.#state = state
    this.#mcp = mcp
    this.#declared = declared
  }

  /** The tools of MCP servers come first. */
  get listed(): readonly Tool[] {
    const { mcp: servers, client_tools } = this.#state.current.settings
    if (!client_tools) return servers ? this.#mcp.listed : NONE
    const [mcp, declaredTools] = [servers ? this.#mcp.listed : NONE, this.#declared.listed]
    if (mcp.length === 0) return declaredTools
    if (this.#joined?.mcp !== mcp || this.#joined.declared !== declaredTools)
      this.#joined = { mcp, declared: declaredTools, all: [...mcp, ...declaredTools] }
    return this.#joined.all
  }

  readonly find = (name: string): Tool | undefined => this.#declared.find(name) ?? this.#mcp.find(name)

  get prepare(): ChangingTools['prepare'] {
    return this.#state.current.settings.mcp && this.#mcp.prepare
  }
}
