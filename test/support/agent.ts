/** A scripted model and conversations with it, for stories that need an agent at work. */
import type { Script } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ServerOptions, TestServer } from './server.ts'
import { startServer } from './server.ts'
import { borrowServer } from './shared-server.ts'
import { subscribe } from './stream.ts'
import { expectRulesOnDisk } from './log-rules.ts'

export type Stage = AsyncDisposable & {
  readonly server: TestServer
  readonly model: ScriptedModel
  /** Makes a conversation with the scripted model; answers its id. */
  readonly create: (fields?: Record<string, unknown>) => Promise<string>
  /** Posts a message with `run: true` and resolves to the events of the run, from its first to its `Result`. */
  readonly say: (id: string, text: string) => Promise<any[]> // eslint-disable-line typescript/no-explicit-any
  /** The first thousand. */
  readonly events: (id: string, query?: string) => Promise<any[]> // eslint-disable-line typescript/no-explicit-any
}

const MOST_EVENTS = 1000

/** Uses the given server, or starts one with the given options. Without either it borrows one that other tests use, too. */
export async function setStage(script: Script, options?: ServerOptions | TestServer): Promise<Stage> {
  const given = options !== undefined && 'call' in options ? options : undefined
  const start = () => (options === undefined ? borrowServer() : startServer(options as ServerOptions))
  return await setStageOn(script, given ?? start)
}

/** Starts a server in this process for the stage. */
export async function setStageHere(script: Script, env?: Readonly<Record<string, string>>): Promise<Stage> {
  // Loaded here: most tests drive a server in another process, and need none of its code.
  const { startServerHere } = await import('./server-here.ts')
  return await setStageOn(script, () => startServerHere(env))
}

async function setStageOn(script: Script, given: TestServer | (() => Promise<TestServer>)): Promise<Stage> {
  const model = await startScriptedModel(script)
  const created: string[] = []
  const server = typeof given === 'function' ? await given() : given
  const events: Stage['events'] = async (id, query = '') => {
    const all: unknown[] = []
    // A page of large events is short.
    for (let next = ''; ;) {
      const path = `/conversations/${id}/events?limit=${MOST_EVENTS}&${query}${next}`
      const { items, next_page_id } = (await server.call('GET', path)).body
      all.push(...(items as unknown[]))
      if (next_page_id === null || all.length >= MOST_EVENTS) return all.slice(0, MOST_EVENTS)
      next = `&page_id=${next_page_id}`
    }
  }
  return {
    server,
    model,
    events,
    async create(fields = {}) {
      const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
      const { status, body } = await server.call('POST', '/conversations', { llm_config, ...fields })
      if (status !== 201) throw new Error(`create: ${status} ${JSON.stringify(body)}`)
      created.push(body.id)
      return body.id
    },
    async say(id, text) {
      const stream = await subscribe(server.url, `/conversations/${id}/events/stream`)
      const { status, body } = await server.call('POST', `/conversations/${id}/messages`, {
        message: { role: 'user', content: text },
        run: true,
      })
      if (status !== 202) throw new Error(`message: ${status} ${JSON.stringify(body)}`)
      await stream.until(({ event }) => event === 'Result')
      await stream.until(({ event, data }) => event === 'StatusUpdate' && data.previous_status === 'running')
      stream.close()
      return stream.frames.map((frame) => frame.data)
    },
    async [Symbol.asyncDispose]() {
      // No run continues for long without the model.
      await model.close()
      try {
        await expectRulesOnDisk(server.dataDir, created)
      } finally {
        if (typeof given === 'function') await server[Symbol.asyncDispose]()
      }
    },
  }
}

/** A turn that runs one command. */
export const bash = (command: string, more: object = {}) => ({
  calls: [{ name: 'Bash', arguments: { command, ...more } }],
})
