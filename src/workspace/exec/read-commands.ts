/**
 * Reads the status and output of a conversation's commands, in the same way for running, finished and interrupted ones.
 */
import type { Command, CommandOutput, CommandPage, ListCommands, ReadOutput } from '../../contract/values/command.ts'
import { Problem } from '../../contract/problem.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { CommandRecord } from './command-record.ts'
import { asLost, viewOf } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { LiveCommand } from './live-command.ts'
import { readOutputPiece } from './read-output.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

export type CommandReaderDeps = {
  readonly records: CommandRecords
  /** Commands that run, and commands whose background processes still write. */
  readonly live: ReadonlyMap<string, LiveCommand>
}

export class CommandReader {
  readonly #records: CommandRecords
  readonly #live: ReadonlyMap<string, LiveCommand>

  constructor({ records, live }: CommandReaderDeps) {
    this.#records = records
    this.#live = live
  }

  /** Throws a `Problem` if the command does not exist. */
  async find(id: string): Promise<CommandRecord> {
    const record = await this.#look(id)
    if (record) return record
    throw new Problem('command_not_found', `There is no command ${id} in this conversation; the oldest are removed.`)
  }

  async get(id: string): Promise<Command> {
    return viewOf(await this.find(id))
  }

  /** Newest first. */
  async list({ limit, page_id }: ListCommands): Promise<CommandPage> {
    const ids = await this.#records.ids()
    const after = page_id === undefined ? undefined : decodePageId(page_id)
    if (page_id !== undefined && !after) {
      throw new Problem(
        'invalid_cursor',
        'page_id was not issued by this server; leave it out to start from the newest command.',
      )
    }
    const rest = after ? ids.filter((id) => id < after[1]) : ids
    const page = rest.slice(0, limit)
    const foundCommands = await Promise.all(page.map((id) => this.#look(id)))
    const last = page.at(-1)
    return {
      items: foundCommands.filter((record) => record !== undefined).map(viewOf),
      next_page_id: last !== undefined && rest.length > page.length ? encodePageId(['', last]) : null,
    }
  }

  /** Waits up to `wait` seconds for more output if there is none after `offset` yet. */
  async output(
    id: string,
    { stream, offset, max_bytes: limit, wait }: ReadOutput,
    signal: AbortSignal,
  ): Promise<CommandOutput> {
    const path = this.#records.outputPath(id, stream)
    const giveUp = AbortSignal.any([signal, AbortSignal.timeout(timerMs(Math.ceil(wait * 1000)))])
    for (;;) {
      const command = this.#live.get(id)
      const changes = command?.changes ?? 0
      const isWhole = !command || (command.isOver && !command.isHeld)
      const { status, exit_code } = await this.find(id)
      const { text, nextOffset, isEnd } = await readOutputPiece(path, { offset, limit, isWhole })
      if (text !== '' || isWhole || giveUp.aborted) {
        return { command_id: id, stream, offset, text, next_offset: nextOffset, status, exit_code, complete: isEnd }
      }
      await command.changedSince(changes, giveUp)
    }
  }

  async #look(id: string): Promise<CommandRecord | undefined> {
    const running = this.#live.get(id)
    if (running) return running.record
    const record = await this.#records.read(id)
    // The command may have begun meanwhile.
    return record && (this.#live.get(id)?.record ?? asLost(record))
  }
}
