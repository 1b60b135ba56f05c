/** The story in the chat: keys that are pressed in a terminal, and what its screen shows. Its agents are here, or on a server. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Event } from '../../../src/contract/events/event.ts'
import { sessions } from '../../../src/index.ts'
import { KEYS, Terminal } from '../../cli/chat/support/terminal.ts'
import type { TestServer } from '../server.ts'
import { commandLine, KEY, startServer } from '../server.ts'
import type { Entrance, EntrancePlace } from './entrance.ts'
import { ALLOWED, ANSWERS } from './script.ts'

export class ChatEntrance implements Entrance {
  readonly name: string
  readonly place: string
  readonly #at: EntrancePlace
  readonly #dataDir: string
  readonly #server: TestServer | undefined
  #terminal: Terminal | undefined
  #id = ''
  #interrupts = 0

  private constructor(at: EntrancePlace, server?: TestServer) {
    this.name = server ? 'agent-server connect' : 'the chat'
    this.place = at.place
    this.#at = at
    this.#dataDir = join(at.home, 'data')
    this.#server = server
  }

  static onThisMachine = async (at: EntrancePlace) => new ChatEntrance(at)
  static ofServer = async (at: EntrancePlace) => new ChatEntrance(at, await startServer())

  async open(): Promise<void> {
    await this.#start('--cwd', this.place, '--file-checkpointing', 'false', '--allowed-tools', ALLOWED.join(', '))
    await this.#screen.say('/status')
    await this.#screen.shows(CONVERSATION)
    this.#id = CONVERSATION.exec(this.#screen.text)![1]!
  }

  say = (text: string) => this.#screen.say(text)

  /** The keys are shown when they count. */
  async asks(command: string): Promise<void> {
    const isAsked = () => this.#screen.text.includes(`$ ${command}`) && this.#screen.text.includes('[y] yes')
    await this.#screen.until(isAsked, `to ask about ${command}`)
  }

  async approve(command: string): Promise<void> {
    await this.asks(command)
    this.#screen.press('y')
  }

  async reject(command: string, reason: string): Promise<void> {
    await this.asks(command)
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

  /** The chat of a server survives it. */
  async kill(isWaiting: boolean): Promise<void> {
    if (this.#server) await this.#restart(this.#server)
    else await this.#killChat()
    if (!isWaiting) await this.#screen.shows('The server has restarted. A message continues')
  }

  async events(): Promise<Event[]> {
    await this.#screen.say('/exit')
    await this.#screen.ended()
    const place = this.#server ? { server: { baseUrl: this.#server.url, apiKey: KEY } } : { persistDir: this.#dataDir }
    return await Array.fromAsync(sessions(place).read(this.#id))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#terminal?.[Symbol.asyncDispose]()
    await this.#server?.[Symbol.asyncDispose]()
  }

  get #screen(): Terminal {
    return this.#terminal! // it is started first
  }

  async #restart(server: TestServer): Promise<void> {
    await server.stop('SIGKILL')
    await this.#screen.shows('connecting again')
    await server.restart()
    await this.#screen.hides('connecting again')
  }

  async #killChat(): Promise<void> {
    process.kill(this.#screen.pid, 'SIGKILL')
    await this.#screen.shows('EXIT 137')
    await this.#screen[Symbol.asyncDispose]()
    await this.#start('-r', this.#id)
  }

  async #start(...options: string[]): Promise<void> {
    const command = this.#server ? ['connect', this.#server.url, ...(await this.#settings())] : ['chat']
    const env = this.#server
      ? { OPENHANDS_MASTER_KEY: KEY }
      : { LLM_MODEL: 'scripted', LLM_BASE_URL: this.#at.modelUrl, LLM_API_KEY: 'scripted-model-key' }
    this.#terminal = new Terminal(commandLine([...command, ...options]), {
      env: { OPENHANDS_DATA_DIR: this.#dataDir, ...env },
      rows: 60,
    })
    await this.#screen.shows('/help lists')
  }

  /** A server gets no key from the environment. */
  async #settings(): Promise<string[]> {
    const path = join(this.#at.home, 'settings.json')
    const settings = { model: 'scripted', base_url: this.#at.modelUrl, api_key: 'scripted-model-key' }
    await writeFile(path, JSON.stringify(settings), { mode: 0o600 })
    return ['--settings', path]
  }
}

const CONVERSATION = /Conversation +([0-9a-f-]{36})/
