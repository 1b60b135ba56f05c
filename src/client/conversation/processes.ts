/** The processes of a conversation, and the shell sessions that they were started in. */
import type { QueryFor } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

export class ProcessesClient extends ConversationPart {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listProcesses', { params: { id: this.id } }, options))
  }

  /** Ends the processes whose command line contains `pattern`, and their children. */
  endMatching(query: QueryFor<'endProcesses'>, options?: CallOptions) {
    return this.api.call('endProcesses', { params: { id: this.id }, query }, options)
  }

  /** Ends a process and its children. */
  end(pid: number, options?: CallOptions) {
    return this.api.call('endProcess', { params: { id: this.id, pid } }, options)
  }
}

export class ShellSessionsClient extends ConversationPart {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listShellSessions', { params: { id: this.id } }, options))
  }

  end(session_id: string, options?: CallOptions) {
    return this.api.call('endShellSession', { params: { id: this.id, session_id } }, options)
  }
}
