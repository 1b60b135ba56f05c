/** What the examples of one page share: the conversation, the ids of earlier answers, and the last answer. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Answer } from '../../support/server.ts'
import { commandLine, KEY } from '../../support/server.ts'
import { subscribe } from '../../support/stream.ts'
import { until } from '../../support/until.ts'
import { filled } from '../blocks.ts'
import type { ExampleStage } from './stage.ts'

const run = promisify(execFile)

/** An id that nothing has. */
const UNKNOWN = '0199a1f3-1b2c-7d3e-8f40-516273849506'

/** Conversations in which a request of a kind waits. */
const WAITING: Readonly<Record<string, { readonly fields: object; readonly message: string }>> = {
  permission: { fields: { tools: ['Bash'], permission_mode: 'default' }, message: 'Deploy it.' },
  question: { fields: { tools: ['AskUserQuestion'] }, message: 'Choose a database.' },
  client_tool: {
    fields: {
      tools: [],
      client_tools: [{ name: 'look_up_order', description: 'An order.', input_schema: { type: 'object' } }],
    },
    message: 'Where is the order?',
  },
}

export type Sent = { readonly method: string; readonly path: string; readonly body?: unknown }

/** `isGuess`: an id of the path is one that nothing has. */
export type Reply = Answer & { readonly isGuess: boolean; readonly sent: Sent }

export class Scene {
  readonly #stage: ExampleStage
  readonly #ids = new Map<string, string>()
  #last: unknown

  constructor(stage: ExampleStage) {
    this.#stage = stage
  }

  /** The body of the last answer, or what the last command printed. */
  get last(): unknown {
    return this.#last
  }

  async send(shown: Sent): Promise<Reply> {
    const known = await this.#known(shown)
    const names = [...shown.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
    const path = shown.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? UNKNOWN)
    const ofPage = known['id'] ?? UNKNOWN
    const body = filled(this.#localized(shown.body), { ...known, conversation_id: ofPage, conversation_ids: ofPage })
    const sent = { ...shown, path, body }
    if (shown.method === 'GET' && /\/stream\b|^\/firehose/.test(path))
      return { ...(await this.#open(path)), isGuess: false, sent }
    const answer = await this.#stage.server.call(shown.method, path, body)
    this.#last = answer.body
    if (answer.status < 300) this.#remember(shown, answer.body)
    return { ...answer, isGuess: names.some((name) => known[name] === undefined), sent }
  }

  /** Runs a script in bash as a reader does, with the variables and the function of the README. Throws if it fails. */
  async shell(script: string): Promise<void> {
    const { directory, server } = this.#stage
    const [, kind] = /"kind": "(\w+)"/.exec(script) ?? []
    const asked = script.includes('$REQUEST_ID') ? await this.#waiting(kind ?? 'permission') : {}
    const place = await mkdtemp(join(server.home, 'shell-'))
    for (const name of ['notes.txt', 'more.txt']) await symlink(join(directory, name), join(place, name))
    const known = Object.entries({ ...Object.fromEntries(this.#ids), ...asked, id: await this.id() })
    const ids = Object.fromEntries(known.map(([name, value]) => [name.toUpperCase(), value]))
    const command = commandLine([])
      .map((word) => `'${word}'`)
      .join(' ')
    const prelude = `api() { curl -sS --fail-with-body -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$@" && echo; }
agent-server() { ${command} "$@"; }\n`
    const end = `\nprintf '%s' "$ID" > "$HOME/.id"`
    const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', `${prelude}${script}${end}`], {
      cwd: place,
      env: { PATH: process.env['PATH'], HOME: place, ...ids, URL: server.url, KEY },
    })
    this.#ids.set('id', await readFile(join(place, '.id'), 'utf8'))
    this.#last = readJson(stdout.trim().split('\n').at(-1) ?? '')
  }

  /** The conversation of the page. The page creates it, or it is one with the default settings. */
  async id(): Promise<string> {
    return this.#ids.get('id') ?? (await this.#create({}))
  }

  async #create(fields: object): Promise<string> {
    const { status, body } = await this.#stage.server.call('POST', '/conversations', fields)
    if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
    this.#ids.set('id', body.id as string)
    return body.id as string
  }

  /** `/srv` is a directory of the stage. */
  #localized(body: unknown): unknown {
    if (body === undefined) return undefined
    return JSON.parse(JSON.stringify(body).replaceAll('"/srv', `"${this.#stage.directory}`)) as unknown
  }

  async #known({ path, body }: Sent): Promise<Readonly<Record<string, string>>> {
    if (path.includes('{id}') || /_ids?":\[?"…/.test(JSON.stringify(body ?? ''))) await this.id()
    const ids = Object.fromEntries(this.#ids)
    const { kind } = (body ?? {}) as { kind?: string }
    if (!path.includes('{request_id}')) return ids
    return { ...ids, ...(await this.#waiting(kind ?? 'permission')) }
  }

  /** The ids of the oldest request of a kind that waits. It begins one for the kinds that an agent alone can open. */
  async #waiting(kind: string): Promise<Readonly<Record<string, string>>> {
    const found = await this.#oldest(kind)
    if (found) return found
    const scene = WAITING[kind]
    if (!scene) return {}
    const id = await this.#create(scene.fields)
    const message = { role: 'user', content: scene.message }
    await this.#stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
    return { id, ...(await until(`a request of the kind ${kind}`, () => this.#oldest(kind))) }
  }

  async #oldest(kind: string): Promise<Record<string, string> | undefined> {
    const { body } = await this.#stage.server.call('GET', `/conversations/${await this.id()}/requests?kinds=${kind}`)
    const [first] = body.items as {
      request_id: string
      payload: { tool_uses?: { tool_use_id: string; input_hash: string }[] }
    }[]
    if (!first) return undefined
    const hashes = (first.payload.tool_uses ?? []).map((call) => [`input_hash of ${call.tool_use_id}`, call.input_hash])
    return { request_id: first.request_id, ...(Object.fromEntries(hashes) as Record<string, string>) }
  }

  async #open(path: string): Promise<Answer> {
    const { close } = await subscribe(this.#stage.server.url, path)
    close()
    return { status: 200, body: {}, headers: new Headers() }
  }

  /** `POST /tasks` gives a `task_id`, and so on. */
  #remember({ method, path }: Sent, body: unknown): void {
    const { id, ...fields } = (body ?? {}) as Record<string, unknown>
    for (const [name, value] of Object.entries(fields))
      if (name.endsWith('_id') && typeof value === 'string' && name !== 'conversation_id') this.#ids.set(name, value)
    if (method !== 'POST' || typeof id !== 'string') return
    const collection = path.replace(/\?.*/, '').split('/').at(-1)!
    const name = ['conversations', 'fork'].includes(collection) ? 'id' : `${collection.replace(/s$/, '')}_id`
    this.#ids.set(name, id)
  }
}

/** A line that is not JSON stays unchanged. */
function readJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return line
  }
}
