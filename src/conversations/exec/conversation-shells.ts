/** The shells of one conversation, shared by its agent and its clients: made when one is needed, and who works in which. */
import type { ShellSession } from '../../contract/command.ts'
import { Problem } from '../../contract/problem.ts'
import type { Shell, Shells } from '../../shell/shell.ts'

export class ConversationShells {
  readonly #create: () => Shells
  #shells: Shells | undefined
  /** Calls of the agent that run in a session or wait for their turn, by session. */
  readonly #agentCalls = new Map<string, number>()

  constructor(create: () => Shells) {
    this.#create = create
  }

  /** The shells in use now; after a `close`, new ones. */
  current(): Shells {
    return (this.#shells ??= this.#create())
  }

  /** Returns a session as the agent's tools have it: what they do there is counted as the agent's. */
  forAgent(sessionId: string): Shell {
    const shell = this.current().get(sessionId)
    return {
      id: shell.id,
      get cwd() {
        return shell.cwd
      },
      run: (command, options) => this.#countAgentCall(shell.id, () => shell.run(command, options)),
      restart: () => this.#countAgentCall(shell.id, () => shell.restart()),
      close: () => shell.close(),
      [Symbol.asyncDispose]: () => shell.close(),
    }
  }

  /** Whether a call of the agent runs there, or waits for its turn. */
  isAgentIn(sessionId: string): boolean {
    return this.#agentCalls.has(sessionId)
  }

  async list(): Promise<ShellSession[]> {
    const sessions = await this.current().list()
    return sessions.map(({ id, ...facts }) => ({ session_id: id, used_by_agent: this.isAgentIn(id), ...facts }))
  }

  /** Whether any process runs in the conversation; a shell that waits for commands is one. */
  async areRunning(): Promise<boolean> {
    // Made at the first use; what was there before was ended then.
    if (!this.#shells) return false
    const sessions = await this.#shells.list()
    return sessions.some(({ status }) => status !== 'suspended') || (await this.#shells.processes()).length > 0
  }

  /** Ends a session with its processes and its state. Throws a `Problem` when there is none, or the agent is in it. */
  async end(sessionId: string): Promise<void> {
    if (this.isAgentIn(sessionId)) {
      throw new Problem('session_busy', `The agent works in shell session ${sessionId}; pause it first.`)
    }
    if (await this.current().end(sessionId)) return
    throw new Problem('session_not_found', `There is no shell session ${sessionId} in this conversation.`)
  }

  /** Ends them all, with all that runs in the conversation. */
  async close(): Promise<void> {
    const closing = this.#shells
    this.#shells = undefined
    await closing?.close()
  }

  async #countAgentCall<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#count(id, 1)
    try {
      return await work()
    } finally {
      this.#count(id, -1)
    }
  }

  #count(id: string, change: number): void {
    const calls = (this.#agentCalls.get(id) ?? 0) + change
    if (calls > 0) this.#agentCalls.set(id, calls)
    else this.#agentCalls.delete(id)
  }
}
