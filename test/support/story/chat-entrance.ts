/** The story in the chat: keys that are pressed in a terminal, and what its screen shows. */
import { join } from 'node:path'
import type { Event } from '../../../src/contract/events/event.ts'
import { sessions } from '../../../src/index.ts'
import { KEYS, Terminal } from '../../cli/chat/support/terminal.ts'
import { commandLine } from '../server.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { ALLOWED, ANSWERS } from './script.ts'

export class ChatEntrance implements Entrance {
  readonly name = 'the chat'
  readonly place: string
  readonly #at: EntrancePlace
  readonly #dataDir: string
  #terminal: Terminal | undefined
  #id = ''
  #interrupts = 0

  constructor(at: EntrancePlace) {
    this.place = at.place
    this.#at = at
    this.#dataDir = join(at.home, 'data')
  }

  async open(): Promise<void> {
    await this.#start('--cwd', this.place, '--allowed-tools', ALLOWED.join(', '))
    await this.#screen.say('/status')
    await this.#screen.shows(CONVERSATION)
    this.#id = CONVERSATION.exec(this.#screen.text)![1]!
  }

  say = (text: string) => this.#screen.say(text)

  async approve(command: string): Promise<void> {
    await this.#asks(command)
    this.#screen.press('y')
  }

  async reject(command: string, reason: string): Promise<void> {
    await this.#asks(command)
    this.#screen.press('r')
    await this.#screen.shows('Why not Bash?')
    await this.#screen.say(reason)
  }

  async answer(label: string): Promise<void> {
    await this.#screen.shows(/> 1\. [\s\S]*or type another answer/)
    this.#screen.press(String(ANSWERS.findIndex((each) => each === label) + 1))
  }

  sees = (text: string) => this.#screen.shows(text)
  interrupt = async () => this.#screen.press(KEYS.escape)

  async ended(answer?: string): Promise<void> {
    const interrupts = answer === undefined ? ++this.#interrupts : 0
    const shown = () => this.#screen.text.split('Interrupted. A message continues').length - 1
    if (answer === undefined) await this.#screen.until(() => shown() === interrupts, `to show ${interrupts} interrupts`)
    else await this.#screen.shows(answer)
    await this.#screen.hides('Esc interrupts')
  }

  async kill(): Promise<void> {
    process.kill(this.#screen.pid, 'SIGKILL')
    await this.#screen.shows('EXIT 137')
    await this.#screen[Symbol.asyncDispose]()
    await this.#start('-r', this.#id)
    await this.#screen.shows('The server has restarted. A message continues')
  }

  async events(): Promise<Event[]> {
    await this.#screen.say('/exit')
    await this.#screen.ended()
    return await Array.fromAsync(sessions({ persistDir: this.#dataDir }).read(this.#id))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#terminal?.[Symbol.asyncDispose]()
  }

  get #screen(): Terminal {
    return this.#terminal! // it is started first
  }

  async #start(...options: string[]): Promise<void> {
    const model = { LLM_MODEL: 'scripted', LLM_BASE_URL: this.#at.modelUrl, LLM_API_KEY: 'scripted-model-key' }
    const env = { OPENHANDS_DATA_DIR: this.#dataDir, ...model }
    this.#terminal = new Terminal(commandLine(['chat', ...options]), { env, rows: 60 })
    await this.#screen.shows('/help lists')
  }

  /** The keys are shown when they count. */
  async #asks(command: string): Promise<void> {
    const isAsked = () => this.#screen.text.includes(`$ ${command}`) && this.#screen.text.includes('[y] yes')
    await this.#screen.until(isAsked, `to ask about ${command}`)
  }
}

const CONVERSATION = /Conversation +([0-9a-f-]{36})/
