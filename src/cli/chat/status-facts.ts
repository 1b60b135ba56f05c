/** What the status line says about a conversation that no event says. */
import type { ChatOptions } from '../chat-seam.ts'
import type { ChatSession } from './chat-session.ts'
import { branchOf } from './git-branch.ts'
import type { Facts } from './render/status-line.ts'
import type { ChatEvent } from './state/reduce.ts'

export class StatusFacts {
  readonly #options: ChatOptions
  readonly #redraw: () => void
  #branch: string | undefined

  constructor(options: ChatOptions, redraw: () => void) {
    this.#options = options
    this.#redraw = redraw
  }

  of({ view, state: { model } }: ChatSession): Facts {
    const { info, server } = this.#options
    const contextWindow = view.llm_config.model === model ? view.context?.size : undefined
    return { isSandboxed: info.isolation !== 'none', server, branch: this.#branch, contextWindow }
  }

  /** Reads again what the event can have changed. */
  async update({ view }: ChatSession, event: Pick<ChatEvent, 'type'>): Promise<void> {
    if (this.#options.server !== undefined || !CHANGING.has(event.type)) return
    const branch = await branchOf(view.workdir)
    if (branch === this.#branch) return
    this.#branch = branch
    this.#redraw()
  }
}

/** The first of a conversation, and the end of commands. */
const CHANGING: ReadonlySet<string> = new Set(['Pending', 'ToolResult', 'CommandEnded'])
