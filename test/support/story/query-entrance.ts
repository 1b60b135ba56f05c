/** The story with `query()`: in the process of a program, or against a server. */
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Event, EventOf } from '../../../src/contract/events/event.ts'
import type { QueryOptions } from '../../../src/index.ts'
import { sessions } from '../../../src/index.ts'
import type { TestServer } from '../server.ts'
import { KEY, startServer } from '../server.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { LineProcess } from './line-process.ts'
import { ALLOWED, TOOLS } from './script.ts'

const PROGRAM = join(import.meta.dirname, 'children/query-program.ts')

export class QueryEntrance implements Entrance {
  readonly name: string
  readonly place: string
  readonly #modelUrl: string
  readonly #server: TestServer | undefined
  /** The options that say where the sessions are. */
  readonly #sessions: QueryOptions
  #program: LineProcess | undefined
  #id: string | undefined

  private constructor({ place, home, modelUrl }: EntrancePlace, server?: TestServer) {
    this.name = server ? 'query() against a server' : 'query() in this process'
    this.place = place
    this.#modelUrl = modelUrl
    this.#server = server
    this.#sessions = server ? { server: { baseUrl: server.url, apiKey: KEY } } : { persistDir: join(home, 'data') }
  }

  static inProcess = async (at: EntrancePlace) => new QueryEntrance(at)
  static againstServer = async (at: EntrancePlace) => new QueryEntrance(at, await startServer())

  async open(): Promise<void> {
    this.#start({
      cwd: this.place,
      tools: TOOLS,
      permissionMode: 'default',
      allowedTools: ALLOWED,
      settingSources: ['project'],
      enableFileCheckpointing: false,
      model: 'scripted',
      baseUrl: this.#modelUrl,
      apiKey: 'scripted-model-key',
    })
  }

  async say(text: string): Promise<void> {
    this.#running.write({ say: text })
    const { conversation_id } = await this.#running.next(({ type }) => type === 'UserMessage')
    this.#id = conversation_id
  }

  asks = () => this.#running.has(({ type, kind }) => type === 'RequestOpened' && kind === 'permission')
  approve = (command: string) => this.#decide(command, { behavior: 'allow' })
  reject = (command: string, message: string) => this.#decide(command, { behavior: 'deny', message })

  async answer(label: string): Promise<void> {
    await this.#running.next(({ type, kind }) => type === 'RequestOpened' && kind === 'question')
    this.#running.write({ label })
  }

  async sees(text: string): Promise<void> {
    await this.#running.next((event) => event.type === 'AssistantDelta' && text.startsWith(event.text_delta))
  }

  async interrupt(): Promise<void> {
    this.#running.write({ interrupt: true })
  }

  async ended(answer?: string): Promise<void> {
    const isEnd = (event: Partial<EventOf<'Result'>>) => event.type === 'Result' && !event.parent_tool_use_id
    const { final_text, stop_reason } = await this.#running.next(isEnd)
    expect([stop_reason, final_text]).toEqual([
      answer === undefined ? 'paused' : 'completed',
      expect.stringContaining(answer ?? ''),
    ])
    await this.#running.next(({ type, previous_status }) => type === 'StatusUpdate' && previous_status === 'running')
  }

  /** The query against a server survives it, as the program does. */
  async kill(isWaiting: boolean): Promise<void> {
    if (this.#server) {
      await this.#server.restart('SIGKILL')
      if (isWaiting) return
      return void (await this.#running.next(
        ({ type, stop_reason }) => type === 'Result' && stop_reason === 'server_restart',
      ))
    }
    await this.#running.kill()
    this.#start({ resume: this.#id })
  }

  async events(): Promise<Event[]> {
    await this.#running.kill()
    return await Array.fromAsync(sessions(this.#sessions).read(this.#id!))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]()
    await this.#server?.[Symbol.asyncDispose]()
  }

  get #running(): LineProcess {
    return this.#program! // it is started first
  }

  #start(options: QueryOptions): void {
    const argument = JSON.stringify({ ...options, ...this.#sessions })
    this.#program = new LineProcess([process.execPath, PROGRAM, argument], {})
  }

  async #decide(command: string, verdict: object): Promise<void> {
    const { payload } = await this.#running.next(({ type, kind }) => type === 'RequestOpened' && kind === 'permission')
    expect(payload.tool_uses).toMatchObject([{ input: { command } }])
    this.#running.write({ verdict })
  }
}
