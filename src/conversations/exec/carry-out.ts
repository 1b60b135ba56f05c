/** Carries one client's command out: in its session's shell or one of its own, with its files, record and event. */
import type { RunCommand } from '../../contract/command.ts'
import { timeoutOf } from '../../contract/command.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { TransientDraft } from '../../contract/events/transient-event.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { commandMark, endMarkedCommand, endTrees } from '../../shell/processes/marked-processes.ts'
import { isAlive, type ProcessEntry } from '../../shell/processes/process-table.ts'
import type { CommandResult, OutputFiles, Shell, Shells } from '../../shell/shell.ts'
import type { CommandRecord } from './command-record.ts'
import { endedRecord, eventOf, failedRecord } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { LiveCommand } from './live-command.ts'

export type CommandCarrierDeps = {
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

export interface CommandCarrier {
  /**
   * Resolves when the end of the command has been stored and told; never rejects. `forget` is called once nothing of it
   * writes any more, at the earliest then.
   */
  readonly carryOut: (live: LiveCommand, request: RunCommand, forget: () => void) => Promise<void>
  /** Ends what a command, over by now, has left running. */
  readonly endLeftovers: (commandId: string) => Promise<void>
  /** The command that has put this process into the background, as far as that is known. */
  readonly ownerOf: (process: ProcessEntry) => string | undefined
}

export function createCommandCarrier(deps: CommandCarrierDeps): CommandCarrier {
  const { records, redact, logger, streamBytes } = deps
  /** What commands have left in the shells' trees, by command. */
  const left = new Map<string, readonly ProcessEntry[]>()

  const keepLeft = (id: string, processes: readonly ProcessEntry[]) => {
    for (const [each, those] of left) if (!those.some(isAlive)) left.delete(each)
    if (processes.length > 0) left.set(id, processes)
  }

  async function write(record: CommandRecord): Promise<boolean> {
    try {
      await records.write(record, { durable: record.idempotency !== undefined })
      return true
    } catch (error) {
      report(error, 'record')
      return false
    }
  }

  /** Answers whether it may be forgotten: one that could not be stored would be taken for one that a crash cut off. */
  async function store(live: LiveCommand, record: CommandRecord): Promise<boolean> {
    const isStored = await write(record)
    await deps.emit(eventOf(record)).catch((error: unknown) => report(error, 'event'))
    live.record = record
    return isStored
  }

  const report = (error: unknown, what: string) =>
    logger.error({ err: error, conversation_id: deps.conversationId }, `a command's ${what} could not be stored`)

  async function carryOut(live: LiveCommand, request: RunCommand, forget: () => void): Promise<void> {
    const { command_id: id, session_id, background } = live.record
    let shell: Shell | undefined
    let isStored = false
    try {
      shell = background ? await deps.shells().fork(session_id, id) : deps.shells().get(session_id)
      const { result, started } = await run(live, request, shell, forget)
      await started
      live.isHeld = result.outputsHeld ?? false
      keepLeft(id, result.left)
      records.countOutput(result.outputBytes.stdout + result.outputBytes.stderr)
      isStored = await store(live, endedRecord(live.record, withDropped(result, streamBytes), redact))
    } catch (error) {
      const why = redact(error instanceof Error ? error.message : String(error))
      isStored = await store(live, failedRecord(live.record, shell?.cwd ?? '', why))
    } finally {
      live.input?.close()
      live.markEnded()
      if (isStored && !live.isHeld) forget()
    }
  }

  async function run(live: LiveCommand, request: RunCommand, shell: Shell, forget: () => void) {
    const { command_id } = live.record
    /** Where somebody waits for its end, nobody is told that it began. */
    let started: Promise<unknown> | undefined
    const onStart = (pid: number | undefined) => {
      const running = { ...live.record, status: 'running' as const, started_at: new Date().toISOString() }
      live.markStarted(pid === undefined || !request.background ? running : { ...running, pid })
      if (request.background) started = write(live.record)
    }
    const result = await shell.run(request.command, {
      timeout: timeoutOf(request) ?? Infinity,
      signal: live.signal,
      ownEnv: commandMark(command_id),
      outputs: filesFor(live, request, forget),
      onStart,
      onOutput: (stream, text, offset) => deps.publish({ type: 'ToolOutputDelta', command_id, stream, offset, text }),
      ...(live.input && { input: live.input }),
    })
    return { result, started }
  }

  function filesFor(live: LiveCommand, { background }: RunCommand, forget: () => void): OutputFiles {
    const { command_id } = live.record
    const placeOf = (stream: 'stdout' | 'stderr') => ({
      path: records.outputPath(command_id, stream),
      toldAs: `commands/${command_id}/output?stream=${stream}`,
    })
    return {
      stdout: placeOf('stdout'),
      stderr: placeOf('stderr'),
      limit: streamBytes,
      // A server that writes a long log is to go on; for one that somebody waits for, nobody reads the rest.
      whenFull: background ? 'drop' : 'end',
      onWritten: () => live.change(),
      onClosed() {
        live.isHeld = false
        live.change()
        if (live.isOver) forget()
      },
    }
  }

  return {
    carryOut,
    async endLeftovers(commandId) {
      await deps.shells().endFork(commandId)
      await endTrees(left.get(commandId) ?? [])
      left.delete(commandId)
      await endMarkedCommand(commandId)
    },
    ownerOf({ pid, startTime }) {
      const isIt = (one: ProcessEntry) => one.pid === pid && one.startTime === startTime
      return left.entries().find(([, processes]) => processes.some(isIt))?.[0]
    },
  }
}

function withDropped(result: CommandResult, limit: number): CommandResult {
  if (result.outputBytes.stdout <= limit && result.outputBytes.stderr <= limit) return result
  const note = [result.note, `Of each output stream the first ${limit} bytes are kept.`].filter(Boolean).join(' ')
  return { ...result, truncated: true, note }
}
