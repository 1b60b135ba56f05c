/** The commands that a client runs in a conversation. */
import type { z } from 'zod'
import type { CommandOutcome, CommandStarted } from '../../contract/values/command.ts'
import type { BodyOf, QueryFor, ReplyOf } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

/** Seconds that the server waits for output in one request. */
const WAIT_S = 20

export class CommandsClient extends ConversationPart {
  /** Returns the outcome of the command; with `background` as soon as it has started. */
  run<const Body extends BodyOf<'runCommand'>>(
    body: Body,
    options?: CallOptions,
  ): Promise<Body extends { background: true } ? z.output<typeof CommandStarted> : CommandOutcome>
  run(body: BodyOf<'runCommand'>, options?: CallOptions): Promise<ReplyOf<'runCommand'>> {
    return this.api.call('runCommand', { params: { id: this.id }, body }, options)
  }

  list(query: QueryFor<'listCommands'> = {}, options?: CallOptions) {
    const params = { id: this.id }
    return listOf((page_id = query.page_id) =>
      this.api.call('listCommands', { params, query: { ...query, page_id } }, options),
    )
  }

  get(command_id: string, options?: CallOptions) {
    return this.api.call('getCommand', { params: { id: this.id, command_id } }, options)
  }

  /** Ends the command and all processes that it started. */
  end(command_id: string, options?: CallOptions) {
    return this.api.call('endCommand', { params: { id: this.id, command_id } }, options)
  }

  readOutput(command_id: string, query?: QueryFor<'readCommandOutput'>, options?: CallOptions) {
    return this.api.call('readCommandOutput', { params: { id: this.id, command_id }, query }, options)
  }

  /** Yields the text of an output stream from its beginning, until the command has ended. */
  async *output(
    command_id: string,
    { stream = 'stdout' }: Pick<QueryFor<'readCommandOutput'>, 'stream'> = {},
    options?: CallOptions,
  ): AsyncGenerator<string> {
    for (let offset = 0; ;) {
      const part = await this.readOutput(command_id, { stream, offset, wait: WAIT_S }, options)
      if (part.text !== '') yield part.text
      offset = part.next_offset
      if (part.complete && part.text === '') return
    }
  }

  writeInput(command_id: string, body: BodyOf<'writeCommandInput'>, options?: CallOptions) {
    return this.api.call('writeCommandInput', { params: { id: this.id, command_id }, body }, options)
  }
}
