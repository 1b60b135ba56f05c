/**
 * The shells of one conversation, shared by its agent and its clients: creates them on demand and tracks which calls
 * use which session.
 */
import type { ShellSession } from '../../contract/values/command.ts'
import { Problem } from '../../contract/problem.ts'
import type { ShellProcess } from '../../shell/processes/shell-processes.ts'
import type { Shell, Shells, ShellsState } from '../../shell/shell.ts'

/** The shells of one agent. `close` ends them with their processes and their state. */
export type ShellsOfAgent = Pick<Shells, 'get' | 'standOf' | 'fork' | 'endFork' | 'close'>

export class ConversationShells {
  readonly #create: () => Shells
  #shells: Shells | undefined
  /** Calls of the agent that run in a session or wait for their turn, by session. */
  readonly #agentCalls = new Map<string, number>()

  constructor(create: () => Shells) {
    this.#create = create
  }

  /** Returns the current shells; after `close`, new ones. */
  current(): Shells {
    return (this.#shells ??= this.#create())
  }

  /** The shells of an agent's tools. Those of a subagent are sessions whose ids begin with `prefix`. */
  ofAgent(prefix = ''): ShellsOfAgent {
    const forks = new Set<string>()
    const own = (sessionId: string) => `${prefix}${sessionId}`
    return {
      get: (sessionId) => this.forAgent(own(sessionId)),
      standOf: (sessionId, restarts) => this.current().standOf(own(sessionId), restarts),
      fork: (sessionId, forkId) => {
        forks.add(forkId)
        return this.current().fork(sessionId === undefined ? undefined : own(sessionId), forkId)
      },
      endFork: (forkId) => this.current().endFork(forkId),
      close: () => this.#endAll(prefix, forks),
    }
  }

  /** Returns a session whose calls are counted as the agent's. */
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

  /** True if a call of the agent runs in the session or waits for it. */
  isAgentIn(sessionId: string): boolean {
    return this.#agentCalls.has(sessionId)
  }

  async list(): Promise<ShellSession[]> {
    const sessions = await this.current().list()
    return sessions.map((session) => ({ ...session, used_by_agent: this.isAgentIn(session.id) }))
  }

  /** True if any process runs in the conversation; an idle shell counts as one. */
  async areRunning(): Promise<boolean> {
    const { sessions, processes } = await this.running()
    return sessions.length + processes.length > 0
  }

  /** The sessions that have a shell, and the processes besides these shells. */
  async running(): Promise<{ sessions: string[]; processes: ShellProcess[] }> {
    // Shells are created on first use, and that ends the processes of earlier ones.
    if (!this.#shells) return { sessions: [], processes: [] }
    const open = (await this.#shells.list()).filter(({ status }) => status !== 'suspended')
    return { sessions: open.map(({ id }) => id), processes: await this.#shells.processes() }
  }

  /** Ends the shells that have been idle for `ms`, and keeps their state. */
  async closeIdle(ms: number): Promise<void> {
    await this.#shells?.closeIdle(ms)
  }

  /**
   * Ends a session with its processes and its state. Throws a `Problem` if it does not exist or the agent is using it.
   */
  async end(sessionId: string): Promise<void> {
    if (this.isAgentIn(sessionId)) {
      throw new Problem('session_busy', `The agent is using shell session ${sessionId}; pause it first.`)
    }
    if (await this.current().end(sessionId)) return
    throw new Problem('session_not_found', `There is no shell session ${sessionId} in this conversation.`)
  }

  /** Ends all sessions and all processes of the conversation. */
  async close(state: ShellsState = 'kept'): Promise<void> {
    const closing = this.#shells
    this.#shells = undefined
    await closing?.close(state)
  }

  async #endAll(prefix: string, forks: ReadonlySet<string>): Promise<void> {
    // Shells are created on first use.
    const shells = this.#shells
    if (!shells) return
    for (const id of forks) await shells.endFork(id)
    for (const { id } of await shells.list()) if (id.startsWith(prefix)) await shells.end(id)
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
