/** The shells of one conversation, shared by its agent and its clients: made when one is needed, and who is in which. */
import type { ShellSession } from '../../contract/command.ts'
import { Problem } from '../../contract/problem.ts'
import type { Shell, Shells } from '../../shell/shell.ts'

export interface ConversationShells {
  /** Those that hold now; after a `close`, new ones. */
  readonly current: () => Shells
  /** The same as the agent's tools have them: what they do there is counted as the agent's. */
  readonly forAgent: Pick<Shells, 'get'>
  /** Whether a call of the agent runs there, or waits for its turn. */
  readonly isAgentIn: (sessionId: string) => boolean
  readonly list: () => Promise<ShellSession[]>
  /** Whether any process runs in the conversation, a shell that waits for commands among them. */
  readonly areRunning: () => Promise<boolean>
  /** Ends a session with its processes and its state. Throws a `Problem` when there is none, or the agent is in it. */
  readonly end: (sessionId: string) => Promise<void>
  /** Ends them all, with all that runs in the conversation. */
  readonly close: () => Promise<void>
}

export function createConversationShells(create: () => Shells): ConversationShells {
  let shells: Shells | undefined
  const agentCalls = new Map<string, number>()
  const count = (id: string, change: number) => {
    const calls = (agentCalls.get(id) ?? 0) + change
    if (calls > 0) agentCalls.set(id, calls)
    else agentCalls.delete(id)
  }
  const current = () => (shells ??= create())
  const isAgentIn = (id: string) => agentCalls.has(id)

  const counted = async <T>(id: string, work: () => Promise<T>): Promise<T> => {
    count(id, 1)
    try {
      return await work()
    } finally {
      count(id, -1)
    }
  }
  const asAgent = (shell: Shell): Shell => ({
    id: shell.id,
    get cwd() {
      return shell.cwd
    },
    run: (command, options) => counted(shell.id, () => shell.run(command, options)),
    restart: () => counted(shell.id, () => shell.restart()),
    close: () => shell.close(),
    [Symbol.asyncDispose]: () => shell.close(),
  })

  return {
    current,
    isAgentIn,
    forAgent: { get: (sessionId) => asAgent(current().get(sessionId)) },
    async list() {
      const sessions = await current().list()
      return sessions.map(({ id, ...facts }) => ({ session_id: id, used_by_agent: isAgentIn(id), ...facts }))
    },
    async areRunning() {
      // Made at the first use; what was there before was ended then.
      if (!shells) return false
      const sessions = await shells.list()
      return sessions.some(({ status }) => status !== 'suspended') || (await shells.processes()).length > 0
    },
    async end(sessionId) {
      if (isAgentIn(sessionId)) {
        throw new Problem('session_busy', `The agent works in shell session ${sessionId}; pause it first.`)
      }
      if (await current().end(sessionId)) return
      throw new Problem('session_not_found', `There is no shell session ${sessionId} in this conversation.`)
    },
    async close() {
      const closing = shells
      shells = undefined
      await closing?.close()
    },
  }
}
