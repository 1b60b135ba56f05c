/** One connection to an MCP server, from the handshake to its end: its tools, its resources, and the calls to it. */
import type {
  CallToolResult,
  Client,
  ClientOptions,
  GetPromptResult,
  JsonSchemaValidatorResult,
  Prompt,
  ReadResourceResult,
  Resource,
} from '@modelcontextprotocol/client'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { McpServer } from '../contract/mcp/mcp-server.ts'
import { orAborted, withinTime, MAX_TIMER_MS } from '../lib/bounded-wait.ts'
import { NoConnection, reasonOf } from './calls/reason-of.ts'
import type { LiveCall } from './calls/live-call.ts'
import { answerElicitation } from './calls/elicitation.ts'
import type { Sdk } from './load-sdk.ts'
import type { ShowText } from './tools/shown-text.ts'
import { MAX_TOOLS } from './tools/offered-tools.ts'
import type { OpenTransport } from './transports/open-transport.ts'

/** The time for the handshake and the first list of tools, in milliseconds. A program may first be downloaded. */
const CONNECT_MS = 60_000
const LIST_MS = 30_000
/** Pages of one list. A list of pages may never end. */
const MAX_PAGES = 50
/** The length of one list as JSON: its pages are in memory together. */
const MAX_LIST_CHARS = 16 * 1024 ** 2
/** Longer than any call: the caller limits the time, as a question to the user does not count. */
const NO_TIMEOUT_MS = MAX_TIMER_MS

export type SessionOptions = {
  readonly sdk: Sdk
  readonly name: string
  readonly server: McpServer
  readonly version: string
  /** The first one is the workdir. Called for each question of the server. */
  readonly directories: () => readonly string[]
  readonly show: ShowText
  readonly open: (signal: AbortSignal) => Promise<OpenTransport>
  /** The list of tools has changed. May be called at any rate. */
  readonly onToolsChanged: () => void
  /** The connection has ended, with the reason as far as it is known. Called once, and not after `close`. */
  readonly onEnd: (reason: string) => void
}

/** Rejects if there is no connection in time; nothing is left of it then. */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  return await withinTime(CONNECT_MS, signal, async (limitedSignal) => {
    const opening = options.open(limitedSignal)
    const openedTransport = await orAborted(opening, limitedSignal, ({ transport }) => void transport.close())
    const session = new Session(options, openedTransport)
    try {
      await orAborted(session.connect(limitedSignal), limitedSignal)
      return session
    } catch (error) {
      await session.close()
      throw new NoConnection(openedTransport.complaint() ?? reasonOf(error), { cause: error })
    }
  })
}

export class Session {
  readonly #client: Client
  readonly #options: SessionOptions
  readonly #opened: OpenTransport
  readonly #calls = new Set<LiveCall>()
  #isClosed = false
  #isConnected = false

  constructor(options: SessionOptions, transport: OpenTransport) {
    const { sdk, server, version, directories } = options
    this.#options = options
    this.#opened = transport
    const isLocal = server.transport === 'stdio'
    const client = new sdk.Client(
      { name: 'agent-server', version },
      {
        // A remote server need not know the paths of this one.
        capabilities: { elicitation: { form: {} }, ...(isLocal && { roots: {} }) },
        jsonSchemaValidator: TRUSTING,
      },
    )
    if (isLocal)
      client.setRequestHandler('roots/list', () => ({
        roots: directories().map((path, at) => ({
          uri: pathToFileURL(path).href,
          name: at === 0 ? 'workdir' : basename(path),
        })),
      }))
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      const [call, ...others] = this.#calls
      // Nothing says which of several calls asks.
      if (!call || others.length > 0) return DECLINED
      return (await call.showForm(() => answerElicitation(options, params, call, mcpReq.signal))) ?? DECLINED
    })
    client.setNotificationHandler('notifications/tools/list_changed', () => options.onToolsChanged())
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is not an event target
    client.onclose = () => this.#onClose()
    this.#client = client
  }

  async connect(signal: AbortSignal): Promise<void> {
    await this.#client.connect(this.#opened.transport, { timeout: CONNECT_MS, signal })
    this.#isConnected = true
  }

  /** Returns what the server calls itself. */
  get serverName(): string | undefined {
    const serverInfo = this.#client.getServerVersion()
    return serverInfo && this.#options.show(`${serverInfo.name} ${serverInfo.version}`, 200)
  }

  has(capability: 'tools' | 'resources' | 'prompts'): boolean {
    return this.#client.getServerCapabilities()?.[capability] !== undefined
  }

  /** No more than are offered, and a few to say that there are more. */
  async listTools(signal: AbortSignal): Promise<ListedItems<unknown>> {
    if (!this.has('tools')) return { items: [], isCut: false }
    return await this.#listAll(signal, MAX_TOOLS, async (cursor, options) => {
      // The SDK refuses the whole list for one tool that is not valid.
      const request = { method: 'tools/list', ...pageOf(cursor) }
      const { tools, nextCursor } = await this.#client.request(request, ToolPage, options)
      return { items: tools, nextCursor }
    })
  }

  async listResources(signal: AbortSignal): Promise<ListedItems<Resource>> {
    return await this.#listAll(signal, MAX_TOOLS, async (cursor, options) => {
      const { resources, nextCursor } = await this.#client.request(
        { method: 'resources/list', ...pageOf(cursor) },
        options,
      )
      return { items: resources, nextCursor }
    })
  }

  async listPrompts(signal: AbortSignal): Promise<ListedItems<Prompt>> {
    return await this.#listAll(signal, MAX_TOOLS, async (cursor, options) => {
      const { prompts, nextCursor } = await this.#client.request({ method: 'prompts/list', ...pageOf(cursor) }, options)
      return { items: prompts, nextCursor }
    })
  }

  async readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult> {
    return await this.#client.request({ method: 'resources/read', params: { uri } }, { signal, timeout: NO_TIMEOUT_MS })
  }

  async getPrompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult> {
    const params = { name, arguments: args }
    return await this.#client.request({ method: 'prompts/get', params }, { signal, timeout: NO_TIMEOUT_MS })
  }

  /** Sends the call once. Rejects when the connection ends, with `hasEnded` true; the call may have had effects then. */
  async callTool(tool: string, args: Record<string, unknown>, call: LiveCall): Promise<CallToolResult> {
    this.#calls.add(call)
    try {
      return await this.#client.request(
        { method: 'tools/call', params: { name: tool, arguments: args } },
        { signal: call.signal, timeout: NO_TIMEOUT_MS, onprogress: call.onProgress },
      )
    } finally {
      this.#calls.delete(call)
    }
  }

  /** Returns why the connection has ended, as far as it is known. */
  get complaint(): string | undefined {
    return this.#opened.complaint()
  }

  get hasEnded(): boolean {
    return this.#isClosed
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#client.close()
    // The client does not know it if it is not connected yet.
    await this.#opened.transport.close()
  }

  #onClose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isConnected) this.#options.onEnd(this.complaint ?? 'the connection has ended')
  }

  async #listAll<T>(signal: AbortSignal, max: number, page: ReadPage<T>): Promise<ListedItems<T>> {
    return await withinTime(LIST_MS, signal, async (limitedSignal) => {
      const all: T[] = []
      let cursor: string | undefined
      let isCut = true
      let chars = 0
      for (let pages = 0; pages < MAX_PAGES && all.length < max; pages++) {
        const { items, nextCursor } = await page(cursor, { signal: limitedSignal, timeout: LIST_MS })
        const isWhole = items.length <= max - all.length
        all.push(...items.slice(0, max - all.length))
        isCut = !isWhole || (nextCursor !== undefined && nextCursor !== cursor)
        if (!isCut || !isWhole) break
        chars += JSON.stringify(items).length
        if (chars > MAX_LIST_CHARS) break
        cursor = nextCursor
      }
      return { items: all, isCut }
    })
  }
}

/** `isCut`: the server has more. */
export type ListedItems<T> = { readonly items: readonly T[]; readonly isCut: boolean }

const ToolPage = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() })

type ReadPage<T> = (
  cursor: string | undefined,
  options: { readonly signal: AbortSignal; readonly timeout: number },
) => Promise<{ readonly items: readonly T[]; readonly nextCursor?: string | undefined }>

const pageOf = (cursor: string | undefined) => (cursor === undefined ? {} : { params: { cursor } })

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface has it
function trust<T>(input: unknown): JsonSchemaValidatorResult<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing is checked
  return { valid: true, data: input as T, errorMessage: undefined }
}

/** A schema of a server is not compiled here: it could take any time. */
const TRUSTING: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface has it
  getValidator: <T>() => trust<T>,
}

const DECLINED = { action: 'decline' as const }
