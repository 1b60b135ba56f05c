/** Runs what is typed after `!` in the shell of the agent, and tells the model about it. */
import { randomUUID } from 'node:crypto'
import { AgentServerError } from '../../../client/request/agent-server-error.ts'
import type { CommandOutcome } from '../../../contract/values/command.ts'
import type { ChatSession } from '../chat-session.ts'
import { messageOfCommand, shownOf } from '../state/shell-command.ts'

/** Seconds. `fetch` of Node.js waits 300 s for a response, which is sent when the command has ended. */
const TIMEOUT_S = 280

export class ShellCommands {
  readonly #session: ChatSession
  readonly #running = new Set<AbortController>()

  constructor(session: ChatSession) {
    this.#session = session
  }

  async run(command: string): Promise<void> {
    if (command === '') throw new Error('Give a command for the shell: !COMMAND.')
    const session = this.#session
    const [key, abort] = [randomUUID(), new AbortController()]
    this.#running.add(abort)
    session.dispatch({ type: 'CommandStarted', key, command })
    try {
      const outcome = await this.#run(command, abort.signal)
      session.dispatch({ type: 'CommandEnded', key, shown: shownOf(outcome), id: outcome.command_id })
      await this.#tell(messageOfCommand(command, outcome), key)
    } catch (error) {
      session.dispatch({ type: 'CommandEnded', key, shown: { stdout: '', stderr: '', end: 'it was interrupted' } })
      if (!abort.signal.aborted) throw error
    } finally {
      this.#running.delete(abort)
    }
  }

  /** Ends the commands that run. Returns false if none does. */
  interrupt(): boolean {
    for (const abort of this.#running) abort.abort()
    return this.#running.size > 0
  }

  /** Runs in another shell while the agent uses its own. */
  async #run(command: string, signal: AbortSignal): Promise<CommandOutcome> {
    const { commands } = this.#session.conversation
    const body = { command, timeout: TIMEOUT_S, kill_on_disconnect: true }
    try {
      return await commands.run({ ...body, session_id: 'agent' }, { signal })
    } catch (error) {
      if (!(error instanceof AgentServerError) || error.code !== 'session_busy') throw error
      this.#session.say('The agent is using its shell: the command runs in another one.')
      return await commands.run(body, { signal })
    }
  }

  /** A message would deny a call that waits. */
  async #tell(content: string, idempotencyKey: string): Promise<void> {
    const { conversation, state } = this.#session
    if (state.status.startsWith('waiting_'))
      return this.#session.say('The agent does not read this output: a message would end what waits.')
    await conversation.postMessage({ message: { role: 'user', content }, run: false }, { idempotencyKey })
  }
}
