/** The story over REST alone: requests, and lists that are asked for again and again. */
import { expect } from 'vitest'
import type { Event } from '../../../src/contract/events/event.ts'
import type { TestServer } from '../server.ts'
import { startServer } from '../server.ts'
import { subscribe } from '../stream.ts'
import { until } from '../until.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { ALLOWED, TOOLS } from './script.ts'

export class RestEntrance implements Entrance {
  readonly name = 'REST'
  readonly place: string
  readonly #modelUrl: string
  readonly #server: TestServer
  #id = ''

  private constructor({ place, modelUrl }: EntrancePlace, server: TestServer) {
    this.place = place
    this.#modelUrl = modelUrl
    this.#server = server
  }

  static create = async (at: EntrancePlace) => new RestEntrance(at, await startServer())

  async open(): Promise<void> {
    const { status, body } = await this.#server.call('POST', '/conversations', {
      workdir: this.place,
      tools: TOOLS,
      permission_mode: 'default',
      allowed_tools: ALLOWED,
      setting_sources: ['project'],
      file_checkpointing: false,
      llm_config: { model: 'scripted', base_url: this.#modelUrl, api_key: 'scripted-model-key' },
    })
    expect(status).toBe(201)
    this.#id = body.id
  }

  async say(content: string): Promise<void> {
    await this.#post('/messages', { message: { role: 'user', content }, run: true }, 202)
  }

  asks = async () => void (await this.#first('permission'))
  approve = (command: string) => this.#decide(command, { behavior: 'allow' })
  reject = (command: string, message: string) => this.#decide(command, { behavior: 'deny', message })

  async answer(label: string): Promise<void> {
    const { request_id, payload } = await this.#first('question')
    const answers = { [payload.questions[0].question]: label }
    await this.#post(`/requests/${request_id}`, { kind: 'question', answers })
  }

  async sees(text: string): Promise<void> {
    const stream = await subscribe(this.#server.url, `/conversations/${this.#id}/events/stream?deltas=true`)
    await stream.until(({ event, data }) => event === 'AssistantDelta' && text.startsWith(data.text_delta))
    stream.close()
  }

  interrupt = () => this.#post('/pause', { interrupt: true })

  async ended(answer?: string): Promise<void> {
    const status = answer === undefined ? 'paused' : 'idle'
    await until(`the status is ${status}`, async () => (await this.#get('')).status === status)
    if (answer === undefined) return
    const { items } = await this.#get('/events?types=Result&order=desc&limit=1')
    expect(items[0].final_text).toContain(answer)
  }

  kill = () => this.#server.restart('SIGKILL')

  async events(): Promise<Event[]> {
    return (await this.#get('/events?limit=1000')).items
  }

  [Symbol.asyncDispose] = () => this.#server[Symbol.asyncDispose]()

  async #decide(command: string, decision: object): Promise<void> {
    const { request_id, payload } = await this.#first('permission')
    const { tool_use_id, input_hash, input } = payload.tool_uses[0]
    expect(input).toEqual({ command })
    const decisions = [{ tool_use_id, input_hash, ...decision }]
    await this.#post(`/requests/${request_id}`, { kind: 'permission', decisions })
  }

  async #first(kind: string) {
    return await until(`a ${kind} waits`, async () => (await this.#get(`/requests?kinds=${kind}`)).items[0])
  }

  async #get(path: string) {
    return (await this.#server.call('GET', `/conversations/${this.#id}${path}`)).body
  }

  async #post(path: string, body: object, expected = 200): Promise<void> {
    const { status, body: said } = await this.#server.call('POST', `/conversations/${this.#id}${path}`, body)
    expect(status, JSON.stringify(said)).toBe(expected)
  }
}
