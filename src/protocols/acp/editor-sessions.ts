/** The sessions of one connection, in either version: makes, opens, lists and forgets them. They end with the connection. */
import { RequestError } from '@agentclientprotocol/sdk'
import { realpath, stat } from 'node:fs/promises'
import type { ConversationView } from '../../contract/conversation.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'
import { CONVERSATION_ID } from '../../contract/values/conversation-id.ts'
import { isAbsolutePath } from './call-form.ts'
import type { ProgramHost } from '../shared/program-host.ts'
import type { EditorAgentOptions } from './editor-agent-options.ts'
import type { FollowedSession } from './followed-session.ts'
import { withOwnErrors } from './protocol-errors.ts'
import { optionsOf } from './session-options.ts'

const LIST_PAGE = 100

/** Pages of a server that one request reads to find conversations in a directory. */
const MAX_PAGES = 10

/** Each follows its conversation. A client closes those that it does not show. */
const MAX_SESSIONS = 100

type Session = { readonly followed: FollowedSession; readonly cancel: () => Promise<void>; readonly close: () => void }

export type OpenedView = { readonly view: ConversationView; readonly host: ProgramHost }

export class EditorSessions<S extends Session> {
  readonly #options: EditorAgentOptions
  readonly #sessions = new Map<string, S>()
  /** Sessions that are being made or found. */
  #beginning = 0
  #isClosed = false

  constructor(options: EditorAgentOptions) {
    this.#options = options
  }

  async host(): Promise<ProgramHost> {
    return await withOwnErrors(this.#options.openHost())
  }

  /** Throws a `RequestError` for a session that this connection has not opened. */
  get(id: string): S {
    // An id in capital letters opens the same one.
    const session = this.#sessions.get(id.toLowerCase())
    if (!session) throw RequestError.sessionNotFound(id)
    return session
  }

  async create(cwd: string, mcp: McpInput | undefined): Promise<OpenedView> {
    return await this.#begin(async () => {
      const directory = await this.#directory(cwd)
      const host = await this.host()
      return { host, view: await withOwnErrors(host.create(directory, mcp)) }
    })
  }

  /** Finds a conversation, whichever client created it. Throws a `RequestError` if it does not exist. */
  async find(sessionId: string, mcp: McpInput | undefined): Promise<OpenedView> {
    const id = idOf(sessionId)
    const find = async () => {
      const host = await this.host()
      const conversation = host.client.conversation(id)
      const view = await withOwnErrors(host.adopt(await withOwnErrors(conversation.get())))
      const servers = addedServers(view, mcp)
      return { host, view: servers ? await withOwnErrors(conversation.updateConfig({ mcp: servers })) : view }
    }
    return await (this.#sessions.has(id) ? find() : this.#begin(find))
  }

  /** Begins a session, after `prepare`, in place of an earlier one of the same conversation. Returns its options. */
  async open(session: S, host: ProgramHost, prepare?: () => Promise<void>) {
    const { view } = session.followed
    if (this.#isClosed) {
      session.close()
      throw RequestError.internalError(undefined, 'the connection is closed')
    }
    this.forget(view.id)
    this.#sessions.set(view.id, session)
    await withOwnErrors(prepare?.() ?? Promise.resolve())
    // The editor knows the session when it has the answer to this request.
    setImmediate(() => {
      void session.followed.showCommands().catch(() => {}) // commands are a convenience
      void session.followed.follow().catch(() => {}) // what waits can be decided elsewhere
    })
    return optionsOf(view, host.models)
  }

  async delete(sessionId: string): Promise<void> {
    const id = idOf(sessionId)
    const { client } = await this.host()
    this.forget(id)
    await withOwnErrors(client.conversation(id).delete())
  }

  forget(id: string): void {
    this.#sessions.get(id)?.close()
    this.#sessions.delete(id)
  }

  close(): void {
    this.#isClosed = true
    for (const id of this.#sessions.keys()) this.forget(id)
  }

  async list(givenCwd: string | undefined, cursor: string | undefined) {
    const cwd = givenCwd === undefined ? undefined : await this.#realPath(givenCwd)
    const { client } = await this.host()
    const query = { sort: 'updated_at', archived: false, limit: LIST_PAGE } as const
    let page = await withOwnErrors(
      client.conversations.list({ ...query, ...(cursor !== undefined && { page_id: cursor }) }),
    )
    for (let pages = 1; ; pages++) {
      const foundViews = page.items.filter(({ workdir }) => cwd === undefined || workdir === cwd)
      const { next_page_id: next } = page
      const sessions = foundViews.map((view) => ({
        sessionId: view.id,
        cwd: view.workdir,
        title: this.#options.nameOf(view),
        updatedAt: view.updated_at,
      }))
      const isEnough = sessions.length > 0 || (!this.#options.isLocal && pages >= MAX_PAGES)
      if (isEnough || next === null) return { sessions, ...(next !== null && { nextCursor: next }) }
      page = await withOwnErrors(client.conversations.list({ ...query, page_id: next }))
    }
  }

  /** Throws a `RequestError` if too many are open. */
  async #begin(work: () => Promise<OpenedView>): Promise<OpenedView> {
    if (this.#sessions.size + this.#beginning >= MAX_SESSIONS)
      throw RequestError.invalidRequest(undefined, `${MAX_SESSIONS} sessions are open; close one`)
    this.#beginning++
    try {
      return await work()
    } finally {
      this.#beginning--
    }
  }

  async #directory(cwd: string): Promise<string> {
    if (!isAbsolutePath(cwd)) throw RequestError.invalidParams(undefined, 'cwd must be an absolute path')
    const isThere = !this.#options.isLocal || (await stat(cwd).catch(() => undefined))?.isDirectory() === true
    if (!isThere) throw RequestError.invalidParams(undefined, `${cwd} is not a directory`)
    return await this.#realPath(cwd)
  }

  /** Conversations have the real names of directories. */
  async #realPath(cwd: string): Promise<string> {
    return this.#options.isLocal ? await realpath(cwd).catch(() => cwd) : cwd
  }
}

function idOf(sessionId: string): string {
  if (!CONVERSATION_ID.test(sessionId)) throw RequestError.sessionNotFound(sessionId)
  return sessionId.toLowerCase()
}

/** Servers that the conversation does not have. The others keep their stored credentials. */
function addedServers({ mcp }: ConversationView, givenMcp: McpInput | undefined): McpInput | undefined {
  const knownServers = mcp?.mcpServers ?? {}
  const addedEntries = Object.entries(givenMcp?.mcpServers ?? {}).filter(([name]) => !Object.hasOwn(knownServers, name))
  return addedEntries.length === 0
    ? undefined
    : { mcpServers: { ...knownServers, ...Object.fromEntries(addedEntries) } }
}
