/** How a conversation's commands stand and what they wrote: the same for those that run, those on disk and those that a crash cut off. */
import type { Command, CommandOutput, CommandPage, ListCommands, ReadOutput } from '../../contract/command.ts'
import { Problem } from '../../contract/problem.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { CommandRecord } from './command-record.ts'
import { asLost, viewOf } from './command-record.ts'
import type { CommandRecords } from './command-records.ts'
import type { LiveCommand } from './live-command.ts'
import { readOutputPiece } from './read-output.ts'

export interface CommandReader {
  /** Newest first. */
  readonly list: (query: ListCommands) => Promise<CommandPage>
  readonly get: (id: string) => Promise<Command>
  /** Waits for more, up to `wait` seconds, when there is nothing behind `offset` yet. */
  readonly output: (id: string, query: ReadOutput, signal: AbortSignal) => Promise<CommandOutput>
  /** Throws a `Problem` when there is none. */
  readonly find: (id: string) => Promise<CommandRecord>
}

export type CommandReaderDeps = {
  readonly records: CommandRecords
  /** Those that run, and those whose background processes write on. */
  readonly live: ReadonlyMap<string, LiveCommand>
}

export function createCommandReader({ records, live }: CommandReaderDeps): CommandReader {
  async function look(id: string): Promise<CommandRecord | undefined> {
    const running = live.get(id)
    if (running) return running.record
    const record = await records.read(id)
    // It may have begun meanwhile.
    return record && (live.get(id)?.record ?? asLost(record))
  }

  async function find(id: string): Promise<CommandRecord> {
    const record = await look(id)
    if (record) return record
    throw new Problem('command_not_found', `There is no command ${id} in this conversation; the oldest are forgotten.`)
  }

  return {
    find,
    get: async (id) => viewOf(await find(id)),

    async list({ limit, page_id }) {
      const ids = await records.ids()
      const after = page_id === undefined ? undefined : decodePageId(page_id)
      if (page_id !== undefined && !after) {
        throw new Problem('invalid_cursor', 'page_id was not issued by this server; leave it out to start anew.')
      }
      const rest = after ? ids.filter((id) => id < after[1]) : ids
      const page = rest.slice(0, limit)
      const found = await Promise.all(page.map(look))
      const last = page.at(-1)
      return {
        items: found.filter((record) => record !== undefined).map(viewOf),
        next_page_id: last !== undefined && rest.length > page.length ? encodePageId(['', last]) : null,
      }
    },

    async output(id, { stream, offset, max_bytes: limit, wait }, signal) {
      const path = records.outputPath(id, stream)
      const giveUp = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(wait * 1000))])
      for (;;) {
        const command = live.get(id)
        const changes = command?.changes ?? 0
        const isWhole = !command || (command.isOver && !command.isHeld)
        const { status, exit_code } = await find(id)
        const { text, nextOffset, isEnd } = await readOutputPiece(path, { offset, limit, isWhole })
        if (text !== '' || isWhole || giveUp.aborted) {
          return { command_id: id, stream, offset, text, next_offset: nextOffset, status, exit_code, complete: isEnd }
        }
        await command.changedSince(changes, giveUp)
      }
    },
  }
}
