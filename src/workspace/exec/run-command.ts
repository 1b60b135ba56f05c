/** Runs one command of a client, in the shell of its session or in a new one, with its files, record and event. */
import type { RunCommand } from '../../contract/values/command.ts'
import { timeoutOf } from '../../contract/values/command.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { TransientDraft } from '../../contract/events/transient-event.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { commandMark, endMarkedCommand, endTrees } from '../../shell/processes/marked-processes.ts'
import { isAlive, type ProcessEntry } from '../../shell/processes/process-table.ts'
import type { ShellResult, OutputFiles, Shell, Shells } from '../../shell/shell.ts'
import type { CommandRecord } from './command-record.ts'
import { endedRecord, eventOf, failedRecord } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { LiveCommand } from './live-command.ts'

export type CommandRunnerDeps = {
  readonly conversationId: string
  readonly shells: () => Shells
  readonly records: CommandRecords
  readonly redact: (text: string) => string
  readonly emit: (draft: EventDraft) => Promise<void>
  readonly publish: (draft: TransientDraft) => void
  readonly logger: Logger
  /** Bytes of each stream that are kept of one command. */
  readonly streamBytes: number
}

export class CommandRunner {
  readonly #deps: CommandRunnerDeps
  /** Background processes that commands have left in the shells' process trees, by command. */
  readonly #processesLeft = new Map<string, readonly ProcessEntry[]>()

  constructor(deps: CommandRunnerDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when the end of the command has been stored and shown; never rejects. Calls `forget` when none of its
   * processes writes any more, and not before that.
   */
  async run(live: LiveCommand, request: RunCommand, forget: () => void): Promise<void> {
    const { shells, records, redact, streamBytes } = this.#deps
    const { command_id: id, session_id, background } = live.record
    let shell: Shell | undefined
    let isStored = false
    try {
      shell = background ? await shells().fork(session_id, id) : shells().get(session_id)
      const { result, started } = await this.#runIn(shell, live, request, forget)
      await started
      live.isHeld = result.outputsHeld ?? false
      this.#keepLeft(id, result.processesLeft)
      records.countOutput(result.outputBytes.stdout + result.outputBytes.stderr)
      isStored = await this.#store(live, endedRecord(live.record, withDropped(result, streamBytes), redact))
    } catch (error) {
      const why = redact(error instanceof Error ? error.message : String(error))
      isStored = await this.#store(live, failedRecord(live.record, shell?.cwd ?? '', why))
    } finally {
      live.input?.close()
      live.markEnded()
      if (isStored && !live.isHeld) forget()
    }
  }

  /** Ends the background processes of a finished command. */
  async endLeftovers(commandId: string): Promise<void> {
    await this.#deps.shells().endFork(commandId)
    await endTrees(this.#processesLeft.get(commandId) ?? [])
    this.#processesLeft.delete(commandId)
    await endMarkedCommand(this.#deps.conversationId, commandId)
  }

  /** Returns the command that started this background process, if known. */
  ownerOf({ pid, startTime }: ProcessEntry): string | undefined {
    const isIt = (one: ProcessEntry) => one.pid === pid && one.startTime === startTime
    return this.#processesLeft.entries().find(([, processes]) => processes.some(isIt))?.[0]
  }

  async #runIn(shell: Shell, live: LiveCommand, request: RunCommand, forget: () => void) {
    const { command_id } = live.record
    /** A client that waits for the end of the command is not notified of its start. */
    let starting: Promise<unknown> | undefined
    const onStart = (pid: number | undefined) => {
      const running = { ...live.record, status: 'running' as const, started_at: new Date().toISOString() }
      live.markStarted(pid === undefined || !request.background ? running : { ...running, pid })
      if (request.background) starting = this.#write(live.record)
    }
    const result = await shell.run(request.command, {
      timeout: timeoutOf(request) ?? Infinity,
      signal: live.signal,
      ownEnv: commandMark(command_id),
      outputs: this.#filesFor(live, request, forget),
      onStart,
      onOutput: (stream, text, offset) =>
        this.#deps.publish({ type: 'ToolOutputDelta', command_id, stream, offset, text }),
      ...(live.input && { input: live.input }),
    })
    return { result, started: starting }
  }

  #filesFor(live: LiveCommand, { background }: RunCommand, forget: () => void): OutputFiles {
    const { command_id } = live.record
    const placeOf = (stream: 'stdout' | 'stderr') => ({
      path: this.#deps.records.outputPath(command_id, stream),
      shownPath: `commands/${command_id}/output?stream=${stream}`,
    })
    return {
      stdout: placeOf('stdout'),
      stderr: placeOf('stderr'),
      limit: this.#deps.streamBytes,
      // A server with a long log must continue; of a command that a client waits for, nobody reads the rest.
      whenFull: background ? 'drop' : 'end',
      onWritten: () => live.change(),
      onClosed() {
        live.isHeld = false
        live.change()
        if (live.isOver) forget()
      },
    }
  }

  #keepLeft(id: string, processes: readonly ProcessEntry[]): void {
    for (const [each, those] of this.#processesLeft) if (!those.some(isAlive)) this.#processesLeft.delete(each)
    if (processes.length > 0) this.#processesLeft.set(id, processes)
  }

  /**
   * Returns true if the command may be forgotten: one that could not be stored would look like one that a crash
   * interrupted.
   */
  async #store(live: LiveCommand, record: CommandRecord): Promise<boolean> {
    const isStored = await this.#write(record)
    await this.#deps.emit(eventOf(record)).catch((error: unknown) => this.#report(error, 'event'))
    live.record = record
    return isStored
  }

  async #write(record: CommandRecord): Promise<boolean> {
    try {
      await this.#deps.records.write(record, { durable: record.idempotency !== undefined })
      return true
    } catch (error) {
      this.#report(error, 'record')
      return false
    }
  }

  #report(error: unknown, what: string): void {
    const { logger, conversationId } = this.#deps
    logger.error({ err: error, conversation_id: conversationId }, `a command's ${what} could not be stored`)
  }
}

function withDropped(result: ShellResult, limit: number): ShellResult {
  if (result.outputBytes.stdout <= limit && result.outputBytes.stderr <= limit) return result
  const note = [result.note, `Only the first ${limit} bytes of each output stream are kept.`].filter(Boolean).join(' ')
  return { ...result, truncated: true, note }
}
