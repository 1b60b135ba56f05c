/** Commands that clients run in a conversation, beside its agent: run, listed, followed, fed and ended. */
import type { CommandInput, CommandOutcome, CommandStarted, RunCommand } from '../../contract/command.ts'
import { Problem } from '../../contract/problem.ts'
import { Queue } from '../../lib/queue.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { CommandCarrier, CommandCarrierDeps } from './carry-out.ts'
import { createCommandCarrier } from './carry-out.ts'
import type { CommandRecord } from './command-record.ts'
import { outcomeOf, startedOf } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { answerOnce, findEarlier, keptOf } from '../idempotency/idempotency.ts'
import { keyInFlight } from '../idempotency/in-flight.ts'
import { LiveCommand } from './live-command.ts'
import type { CommandReader } from './read-commands.ts'
import { createCommandReader } from './read-commands.ts'
import { refuseSecretsIn } from '../config/refuse-secrets.ts'

export type RunOptions = {
  /** Ends the command when it is aborted. */
  readonly signal?: AbortSignal | undefined
  readonly idempotency?: Idempotency | undefined
  /** Told the id as soon as there is one: before the command begins, and so before `run` resolves. */
  readonly onId?: (commandId: string) => void
}

export interface ClientCommands
  extends Pick<CommandReader, 'list' | 'get' | 'output'>, Pick<CommandCarrier, 'ownerOf'> {
  /**
   * Runs a command and resolves with what it came to: rejects for nothing the command does, only with a `Problem` when
   * it could not begin (`session_busy`, `limit_reached`, `unavailable`, a secret in it, the key's own refusals). Its
   * record and its `CommandResult` are stored when this resolves.
   */
  run(request: RunCommand, options?: RunOptions): Promise<CommandOutcome>
  /** The same in the background: resolves once it has started. */
  start(request: RunCommand, options?: RunOptions): Promise<CommandStarted>
  /** Throws a `Problem` when nobody reads its standard input any more. */
  feed(id: string, input: CommandInput): Promise<void>
  /** All that the command started is dead when this resolves; one that had ended long before is none the worse for it. */
  end(id: string): Promise<void>
  /** Whether none runs or waits, and nothing writes to the files of one. */
  readonly isIdle: boolean
  /** Ends those that run. No other begins. */
  close(): Promise<void>
}

export type ClientCommandsDeps = Omit<CommandCarrierDeps, 'streamBytes'> & {
  readonly records: CommandRecords
  /** Whether a call of the agent is in that session. */
  readonly isAgentIn: (sessionId: string) => boolean
  readonly limits: CommandLimits
}

/** Of one conversation. */
export type CommandLimits = {
  /** Commands that run or wait for their turn. */
  readonly running: number
  /** Commands whose records are kept. */
  readonly records: number
  /** Bytes kept of each output stream of a command. */
  readonly streamBytes: number
  /** Bytes of output kept over all commands. */
  readonly outputBytes: number
}

export const DEFAULT_COMMAND_LIMITS: CommandLimits = {
  running: 16,
  records: 1000,
  streamBytes: 64 * 1024 ** 2,
  outputBytes: 1024 ** 3,
}

/** What the session of who names none is called elsewhere. */
const SESSION_ALIASES: Readonly<Record<string, string>> = { api: 'default' }

export function createClientCommands(deps: ClientCommandsDeps): ClientCommands {
  const { records, redact, isAgentIn, limits } = deps
  const carrier = createCommandCarrier({ ...deps, streamBytes: limits.streamBytes })
  /** Those that run, and those whose background processes write on. */
  const live = new Map<string, LiveCommand>()
  const reader = createCommandReader({ records, live })
  const keyed = new Queue({ limit: 1 })
  const launches = new Queue({ limit: 1 })
  let isClosed = false

  async function begin(request: RunCommand, options: RunOptions): Promise<LiveCommand | CommandRecord> {
    refuseSecretsIn({ 'Idempotency-Key': options.idempotency?.key }, redact)
    if (redact(request.command) !== request.command) throw HOLDS_SECRET
    const { idempotency } = options
    if (!idempotency) return await admit(request, options)
    // In turn: two that come at once must not both find that there was none before.
    const found = await keyed.run(async () => {
      refuseInFlight(idempotency)
      const remembered = (await records.withKey(idempotency.key)).map((record) => ({ record, ...keyOf(record) }))
      const make = () => register(request, idempotency)
      return answerOnce<(typeof remembered)[number], CommandRecord | LiveCommand>(idempotency, {
        remembered,
        again: ({ record }) => record,
        make,
      })
    })
    return found instanceof LiveCommand ? await launch(found, request, options) : await settled(found)
  }

  function admit(request: RunCommand, options: RunOptions): Promise<LiveCommand> {
    return launch(register(request, undefined), request, options)
  }

  /** From here on it counts, and its key is in use. */
  function register(request: RunCommand, idempotency: Idempotency | undefined): LiveCommand {
    if (isClosed) throw new Problem('unavailable', 'The conversation is closed.')
    const session_id = SESSION_ALIASES[request.session_id] ?? request.session_id
    if (!request.background) {
      refuseBusy(session_id)
      // Throws when there are too many already.
      deps.shells().get(session_id)
    }
    if (
      live
        .values()
        .filter((command) => !command.isOver)
        .toArray().length >= limits.running
    )
      throw tooMany(limits.running)
    const { command, background, stdin, keep_stdin_open: keepsOpen = background } = request
    const record: CommandRecord = {
      command_id: uuid7(),
      command,
      session_id,
      background,
      status: 'queued',
      created_at: new Date().toISOString(),
      exit_code: null,
      truncated: false,
      timed_out: false,
      stdout: '',
      stderr: '',
      ...(idempotency && { idempotency: keptOf(idempotency) }),
    }
    const made = new LiveCommand(record, { hasInput: keepsOpen || stdin !== undefined })
    live.set(record.command_id, made)
    if (stdin !== undefined) made.input?.write(stdin)
    if (!keepsOpen) made.input?.end()
    return made
  }

  /** One at a time: they are to begin in the order they came, however long the disk takes for each. */
  function launch(made: LiveCommand, request: RunCommand, options: RunOptions): Promise<LiveCommand> {
    return launches.run(async () => {
      await note(made)
      options.onId?.(made.record.command_id)
      carryOut(made, request, options.signal)
      return made
    })
  }

  /** Before it starts: after a crash it is known that there was one. With a key, after a power cut too. */
  async function note(made: LiveCommand): Promise<void> {
    const { record } = made
    try {
      await records.makeRoom((id) => live.has(id))
      await records.write(record, { durable: record.idempotency !== undefined })
    } catch (error) {
      live.delete(record.command_id)
      made.markEnded()
      throw error
    }
  }

  function carryOut(made: LiveCommand, request: RunCommand, signal: AbortSignal | undefined): void {
    const onAbort = () => made.abort()
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
    const forget = () => live.delete(made.record.command_id)
    void carrier.carryOut(made, request, forget).finally(() => signal?.removeEventListener('abort', onAbort))
  }

  function refuseBusy(sessionId: string): void {
    if (!isAgentIn(sessionId)) return
    throw new Problem(
      'session_busy',
      `The agent works in shell session ${sessionId}; wait until its call has ended, or use another session.`,
    )
  }

  function refuseInFlight(idempotency: Idempotency): void {
    const same = live.values().find(({ record }) => record.idempotency?.key === idempotency.key)
    if (!same || same.isAnswered) return
    findEarlier([keyOf(same.record)], idempotency, Date.now())
    throw keyInFlight({ command_id: same.record.command_id })
  }

  /** What an earlier request with the same key came to. */
  async function settled({ command_id }: CommandRecord): Promise<CommandRecord> {
    const record = await reader.find(command_id)
    if (record.status !== 'lost') return record
    throw new Problem(
      'outcome_unknown',
      'The server was killed while this command ran: it was carried out in part, wholly, or not at all. Look at what it did; send it with a new Idempotency-Key to run it again.',
      { details: { command_id: record.command_id } },
    )
  }

  return {
    async run(request, options = {}) {
      const begun = await begin(request, options)
      if (!(begun instanceof LiveCommand)) return outcomeOf(begun)
      await begun.ended
      return outcomeOf(begun.record)
    },

    async start(request, options = {}) {
      const begun = await begin(request, options)
      if (!(begun instanceof LiveCommand)) return startedOf(begun)
      await begun.started
      return startedOf(begun.record)
    },

    async feed(id, { text, eof }) {
      const record = await reader.find(id)
      const input = live.get(id)?.input
      if (!input?.isOpen) {
        const why = record.status === 'running' || record.status === 'queued' ? 'has no open' : 'has ended, and has no'
        throw new Problem('input_closed', `The command ${why} standard input; start one with keep_stdin_open.`)
      }
      if (!input.write(text)) {
        throw new Problem('limit_reached', 'The command has not read what was sent before; send the rest later.', {
          details: { retry_after: 1 },
        })
      }
      if (eof) input.end()
    },

    async end(id) {
      await reader.find(id)
      const command = live.get(id)
      command?.abort()
      await command?.ended
      await carrier.endLeftovers(id)
    },

    list: reader.list,
    get: reader.get,
    output: reader.output,
    ownerOf: carrier.ownerOf,

    get isIdle() {
      return live.size === 0
    },

    async close() {
      isClosed = true
      const running = [...live.values()].filter((command) => !command.isOver)
      for (const command of running) command.abort()
      await Promise.all(running.map((command) => command.ended))
    },
  }
}

const keyOf = ({ idempotency, created_at: at }: CommandRecord) => ({
  ...(idempotency ?? { key: '', bodyHash: '' }),
  at,
})

const HOLDS_SECRET = new Problem(
  'invalid_request',
  'command holds the value of a secret, and everybody who sees the conversation would see it; say $NAME instead, or send it as stdin.',
)

const tooMany = (limit: number) =>
  new Problem(
    'limit_reached',
    `At most ${limit} commands of a conversation run at a time, those that wait for their turn included; wait for one, or end it.`,
    { details: { limit, retry_after: 1 } },
  )
