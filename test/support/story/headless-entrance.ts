/** The story with `agent-server -p`: messages and answers are lines of stdin, as `--ask stdin` reads them. */
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Event } from '../../../src/contract/events/event.ts'
import { sessions } from '../../../src/index.ts'
import { commandLine } from '../server.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { LineProcess } from './line-process.ts'
import { ALLOWED } from './script.ts'

const LINES = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--include-partial-messages']
const FORMATS = ['-p', ...LINES, '--ask', 'stdin']

export class HeadlessEntrance implements Entrance {
  readonly name = 'the headless command line'
  readonly place: string
  readonly #at: EntrancePlace
  readonly #dataDir: string
  #command: LineProcess | undefined
  #id = ''

  constructor(at: EntrancePlace) {
    this.place = at.place
    this.#at = at
    this.#dataDir = join(at.home, 'data')
  }

  open = async () => this.#start('--file-checkpointing', 'false', '--allowed-tools', ALLOWED.join(', '))

  async say(content: string): Promise<void> {
    this.#running.write({ type: 'user', message: { role: 'user', content } })
    const { conversation_id } = await this.#running.next(({ type }) => type === 'UserMessage')
    this.#id = conversation_id
  }

  asks = () => this.#running.has(({ type, kind }) => type === 'RequestOpened' && kind === 'permission')
  approve = (command: string) => this.#decide(command, { behavior: 'allow' })
  reject = (command: string, message: string) => this.#decide(command, { behavior: 'deny', message })

  async answer(label: string): Promise<void> {
    const { request_id, payload } = await this.#running.next(
      ({ type, kind }) => type === 'RequestOpened' && kind === 'question',
    )
    const answers = { [payload.questions[0].question]: label }
    await this.#send({ type: 'answer', request_id, answer: { kind: 'question', answers } })
  }

  sees = (text: string) =>
    this.#running.has(({ type, text_delta }) => type === 'AssistantDelta' && text.startsWith(text_delta))
  interrupt = () => this.#send({ type: 'pause', interrupt: true })

  async ended(answer?: string): Promise<void> {
    const { stop_reason, exit_code, final_text } = await this.#running.next(({ type }) => type === 'outcome')
    expect([stop_reason, exit_code]).toEqual(answer === undefined ? ['paused', 3] : ['completed', 0])
    expect(final_text).toContain(answer ?? '')
  }

  async kill(): Promise<void> {
    await this.#running.kill()
    this.#start('--resume', this.#id)
  }

  async events(): Promise<Event[]> {
    await this.#running.end()
    return await Array.fromAsync(sessions({ persistDir: this.#dataDir }).read(this.#id))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#command?.[Symbol.asyncDispose]()
  }

  get #running(): LineProcess {
    return this.#command! // it is started first
  }

  #start(...options: string[]): void {
    const { home, place, modelUrl } = this.#at
    const model = { LLM_MODEL: 'scripted', LLM_BASE_URL: modelUrl, LLM_API_KEY: 'scripted-model-key' }
    this.#command = new LineProcess(commandLine([...FORMATS, ...options]), {
      cwd: place,
      env: { PATH: process.env['PATH'], HOME: home, OPENHANDS_DATA_DIR: this.#dataDir, ...model },
    })
  }

  async #decide(command: string, decision: object): Promise<void> {
    const { request_id, payload } = await this.#running.next(
      ({ type, kind }) => type === 'RequestOpened' && kind === 'permission',
    )
    const { tool_use_id, input_hash, input } = payload.tool_uses[0]
    expect(input).toEqual({ command })
    const answer = { kind: 'permission', decisions: [{ tool_use_id, input_hash, ...decision }] }
    await this.#send({ type: 'answer', request_id, answer })
  }

  async #send(frame: { readonly type: string; readonly [name: string]: unknown }): Promise<void> {
    this.#running.write(frame)
    await this.#running.next(({ type, of }) => type === 'ack' && of === frame.type)
  }
}
