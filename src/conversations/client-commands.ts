/** Commands that clients run in a conversation, beside its agent: run, listed, followed, fed and ended. */
import type { CommandOutcome, CommandStarted, RunCommand } from '../contract/command.ts'
import type { Idempotency } from './idempotency.ts'

export interface ClientCommands {
  /**
   * Runs a command and resolves with what it came to: rejects for nothing the command does, only with a `Problem` when
   * it could not begin (`session_busy`, `limit_reached`, `unavailable`, a secret in it, the key's own refusals). Once
   * `signal` is aborted it is ended, and the outcome says `killed`. What belongs to a command is stored before this
   * resolves: its record, and then its `CommandResult`.
   */
  run(request: RunCommand, options?: RunOptions): Promise<CommandOutcome>
  /** The same in the background: resolves once it has started. */
  start(request: RunCommand, options?: RunOptions): Promise<CommandStarted>
}

export type RunOptions = {
  readonly signal?: AbortSignal
  readonly idempotency?: Idempotency | undefined
  /** Told the id as soon as there is one: before the command begins, and so before `run` resolves. */
  readonly onId?: (commandId: string) => void
}
