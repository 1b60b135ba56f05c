/** Commands that clients run in a conversation, in addition to its agent: run, list, follow, feed and end them. */
import type {
  Command,
  CommandInput,
  CommandOutcome,
  CommandOutput,
  CommandPage,
  CommandStarted,
  ListCommands,
  ReadOutput,
  RunCommand,
} from '../../contract/values/command.ts'
import { Problem } from '../../contract/problem.ts'
import { Queue } from '../../lib/queue.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { ProcessEntry } from '../../shell/processes/process-table.ts'
import type { CommandRunnerDeps } from './run-command.ts'
import { CommandRunner } from './run-command.ts'
import type { ClientCommandLimits } from './command-limits.ts'
import type { CommandRecord } from './command-record.ts'
import { outcomeOf, startedOf } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { Idempotency } from '../../state/idempotency.ts'
import { answerOnce, findEarlier, keptOf } from '../../state/idempotency.ts'
import { keyInFlight } from '../../idempotency/in-flight.ts'
import { LiveCommand } from './live-command.ts'
import { CommandReader } from './read-commands.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'

export type CommandRequestOptions = {
  /** Ends the command when it is aborted. */
  readonly signal?: AbortSignal | undefined
  readonly idempotency?: Idempotency | undefined
  /** Called with the id as soon as it exists: before the command begins, and so before `run` resolves. */
  readonly onId?: (commandId: string) => void
}

export type ClientCommandsDeps = Omit<CommandRunnerDeps, 'streamBytes'> & {
  readonly records: CommandRecords
  readonly redactInSlices: (text: string) => Promise<string>
  /** Returns why a rule refuses the command, as a sentence; undefined if none does. */
  readonly refusal: (command: string, sessionId: string) => Promise<string | undefined>
  /** True if a tool call of the agent is active in that session. */
  readonly isAgentIn: (sessionId: string) => boolean
  readonly limits: ClientCommandLimits
}

/** Names of the default session in other places. */
const SESSION_ALIASES: ReadonlyMap<string, string> = new Map([['api', 'default']])

export class ClientCommands {
  readonly #deps: ClientCommandsDeps
  readonly #runner: CommandRunner
  readonly #reader: CommandReader
  /** Commands that run, and commands whose background processes still write. */
  readonly #live = new Map<string, LiveCommand>()
  readonly #keyed = new Queue({ limit: 1 })
  readonly #launches = new Queue({ limit: 1 })
  #isClosed = false

  constructor(deps: ClientCommandsDeps) {
    this.#deps = deps
    this.#runner = new CommandRunner({ ...deps, streamBytes: deps.limits.streamBytes })
    this.#reader = new CommandReader({ records: deps.records, live: this.#live })
  }

  /**
   * Runs a command and resolves with its outcome. Never rejects because of what the command does, only with a `Problem`
   * if it could not begin (`session_busy`, `limit_reached`, `unavailable`, a secret in it, the key's own refusals). Its
   * record and its `CommandResult` are stored when this resolves.
   */
  async run(request: RunCommand, options: CommandRequestOptions = {}): Promise<CommandOutcome> {
    const begunCommand = await this.#begin(request, options)
    if (!(begunCommand instanceof LiveCommand)) return outcomeOf(begunCommand)
    await begunCommand.ended
    return outcomeOf(begunCommand.record)
  }

  /** Runs a command in the background: resolves when it has started. */
  async start(request: RunCommand, options: CommandRequestOptions = {}): Promise<CommandStarted> {
    const begunCommand = await this.#begin(request, options)
    if (!(begunCommand instanceof LiveCommand)) return startedOf(begunCommand)
    await begunCommand.started
    return startedOf(begunCommand.record)
  }

  /** Throws a `Problem` if nothing reads its standard input any more. */
  async feed(id: string, { text, eof }: CommandInput): Promise<void> {
    const record = await this.#reader.find(id)
    const input = this.#live.get(id)?.input
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
  }

  /**
   * Everything that the command started is dead when this resolves. Does nothing for a command that ended long before.
   */
  async end(id: string): Promise<void> {
    await this.#reader.find(id)
    const command = this.#live.get(id)
    command?.abort()
    await command?.ended
    await this.#runner.endLeftovers(id)
  }

  /** Newest first. */
  list(query: ListCommands): Promise<CommandPage> {
    return this.#reader.list(query)
  }

  get(id: string): Promise<Command> {
    return this.#reader.get(id)
  }

  /** See `CommandReader.output`. */
  output(id: string, query: ReadOutput, signal: AbortSignal): Promise<CommandOutput> {
    return this.#reader.output(id, query, signal)
  }

  /** See `CommandRunner.ownerOf`. */
  ownerOf(process: ProcessEntry): string | undefined {
    return this.#runner.ownerOf(process)
  }

  /** True if no command runs or waits, and nothing writes to the files of one. */
  get isIdle(): boolean {
    return this.#live.size === 0
  }

  /** Ends the running commands. No other command can begin. */
  async close(): Promise<void> {
    this.#isClosed = true
    const running = [...this.#live.values()].filter((command) => !command.isOver)
    for (const command of running) command.abort()
    await Promise.all(running.map((command) => command.ended))
  }

  async #begin(request: RunCommand, options: CommandRequestOptions): Promise<LiveCommand | CommandRecord> {
    const { records, redact, redactInSlices } = this.#deps
    refuseSecretsIn({ 'Idempotency-Key': options.idempotency?.key, session_id: request.session_id }, redact)
    if ((await redactInSlices(request.command)) !== request.command) throw HOLDS_SECRET
    const refusal = await this.#deps.refusal(request.command, sessionOf(request))
    if (refusal !== undefined) throw new Problem('denied_by_rule', refusal)
    const { idempotency } = options
    if (!idempotency) return await this.#launchNew(request, options)
    // Check in turn: two concurrent requests must not both find that the key is unused.
    const foundCommand = await this.#keyed.run(async () => {
      this.#refuseInFlight(idempotency)
      const rememberedKeys = (await records.withKey(idempotency.key)).map((record) => ({ record, ...keyOf(record) }))
      const make = () => this.#register(request, idempotency)
      return answerOnce<(typeof rememberedKeys)[number], CommandRecord | LiveCommand>(idempotency, {
        remembered: rememberedKeys,
        again: ({ record }) => record,
        make,
      })
    })
    return foundCommand instanceof LiveCommand
      ? await this.#launch(foundCommand, request, options)
      : await this.#earlierOutcome(foundCommand)
  }

  #launchNew(request: RunCommand, options: CommandRequestOptions): Promise<LiveCommand> {
    return this.#launch(this.#register(request, undefined), request, options)
  }

  /** Counts the command and marks its key as used. */
  #register(request: RunCommand, idempotency: Idempotency | undefined): LiveCommand {
    if (this.#isClosed) throw new Problem('unavailable', 'The conversation is closed.')
    const session_id = sessionOf(request)
    if (!request.background) {
      this.#refuseBusy(session_id)
      // Throws if there are too many commands already.
      this.#deps.shells().get(session_id)
    }
    this.#refuseTooMany()
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
    const liveCommand = new LiveCommand(record, { hasInput: keepsOpen || stdin !== undefined })
    this.#live.set(record.command_id, liveCommand)
    if (stdin !== undefined) liveCommand.input?.write(stdin)
    if (!keepsOpen) liveCommand.input?.end()
    return liveCommand
  }

  /** Launches one at a time: commands begin in the order of their requests, however long the disk takes for each. */
  #launch(liveCommand: LiveCommand, request: RunCommand, options: CommandRequestOptions): Promise<LiveCommand> {
    return this.#launches.run(async () => {
      await this.#note(liveCommand)
      options.onId?.(liveCommand.record.command_id)
      this.#startRunner(liveCommand, request, options.signal)
      return liveCommand
    })
  }

  /**
   * Writes the record before the command starts: after a crash it is known that it existed. With a key, it also
   * survives a power failure.
   */
  async #note(liveCommand: LiveCommand): Promise<void> {
    const { records } = this.#deps
    const { record } = liveCommand
    try {
      await records.makeRoom((id) => this.#live.has(id))
      await records.write(record, { durable: record.idempotency !== undefined })
    } catch (error) {
      this.#live.delete(record.command_id)
      liveCommand.markEnded()
      throw error
    }
  }

  #startRunner(liveCommand: LiveCommand, request: RunCommand, signal: AbortSignal | undefined): void {
    const onAbort = () => liveCommand.abort()
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
    const forget = () => this.#live.delete(liveCommand.record.command_id)
    void this.#runner.run(liveCommand, request, forget).finally(() => signal?.removeEventListener('abort', onAbort))
  }

  #refuseTooMany(): void {
    const { running: limit } = this.#deps.limits
    const running = this.#live
      .values()
      .filter((command) => !command.isOver)
      .toArray().length
    if (running >= limit) throw tooMany(limit)
  }

  #refuseBusy(sessionId: string): void {
    if (!this.#deps.isAgentIn(sessionId)) return
    throw new Problem(
      'session_busy',
      `The agent is using shell session ${sessionId}; wait until its call has ended, or use another session.`,
    )
  }

  #refuseInFlight(idempotency: Idempotency): void {
    const same = this.#live.values().find(({ record }) => record.idempotency?.key === idempotency.key)
    if (!same || same.isAnswered) return
    findEarlier([keyOf(same.record)], idempotency, Date.now())
    throw keyInFlight({ command_id: same.record.command_id })
  }

  /** Returns the outcome of an earlier request with the same key. */
  async #earlierOutcome({ command_id }: CommandRecord): Promise<CommandRecord> {
    const record = await this.#reader.find(command_id)
    if (record.status !== 'lost') return record
    throw new Problem(
      'outcome_unknown',
      'The server was killed while this command ran: it may have run partly, completely, or not at all. Check its effects; to run it again, send it with a new Idempotency-Key.',
      { details: { command_id: record.command_id } },
    )
  }
}

const sessionOf = ({ session_id }: RunCommand): string => SESSION_ALIASES.get(session_id) ?? session_id

const keyOf = ({ idempotency, created_at: at }: CommandRecord) => ({
  ...(idempotency ?? { key: '', bodyHash: '' }),
  at,
})

const HOLDS_SECRET = new Problem(
  'invalid_request',
  'command contains the value of a secret, which everyone who can read the conversation would see; use $NAME instead, or send it as stdin.',
)

const tooMany = (limit: number) =>
  new Problem(
    'limit_reached',
    `At most ${limit} commands of a conversation can run or wait at a time; wait for one to end, or end it.`,
    { details: { limit, retry_after: 1 } },
  )
