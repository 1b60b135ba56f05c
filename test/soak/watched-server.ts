/**
 * The server of a soak, from its sources, under V8's inspector: only the inspector can force a collection, and the
 * product has no way to ask for one.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { WebSocket } from 'ws'
import { PATIENCE_MS } from '../support/patience.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'

/** What the server holds at one moment. Memory is in bytes. */
export type Holdings = {
  /** The heap after a forced collection. */
  readonly heap: number
  readonly external: number
  readonly resident: number
  readonly descriptors: number
  readonly processes: number
  readonly known: number
  readonly open: number
}

export type WatchedServer = AsyncDisposable & {
  readonly server: TestServer
  readonly measure: () => Promise<Holdings>
  /** The values of the metrics whose names begin so, summed. */
  readonly metric: (name: string) => Promise<number>
  readonly writeSnapshot: (path: string) => Promise<void>
  /** A process waits for its inspector before it exits: call it before the server is stopped. */
  readonly disconnect: () => void
}

export async function startWatchedServer(env: Record<string, string>): Promise<WatchedServer> {
  // As `npm start` does it, except that the inspector listens.
  const flags = '--inspect=127.0.0.1:0 --max-semi-space-size=4'
  const server = await startServer({ env: { ...env, NODE_OPTIONS: flags } })
  const [url] = /ws:\/\/\S+/.exec(server.output()) ?? []
  if (url === undefined) throw new Error(`the inspector does not listen:\n${server.output()}`)
  const inspector = await connect(url)
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result } = await inspector.send('Runtime.evaluate', { expression, returnByValue: true })
    return result.value
  }
  const metric = async (name: string) => sumOf(name, await metricsOf(server))
  return {
    server,
    metric,
    async measure() {
      // The second one collects what finalizers of the first have released.
      for (let i = 0; i < 2; i++) await inspector.send('HeapProfiler.collectGarbage')
      const memory = (await evaluate('process.memoryUsage()')) as NodeJS.MemoryUsage
      return {
        heap: memory.heapUsed,
        external: memory.external,
        resident: memory.rss,
        descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
        processes: descendantsOf(server.pid).length,
        known: await metric('agent_server_conversations{'),
        open: await metric('agent_server_conversations_open'),
      }
    },
    async writeSnapshot(path) {
      await evaluate(`process.getBuiltinModule('v8').writeHeapSnapshot(${JSON.stringify(path)})`)
    },
    disconnect: inspector.close,
    async [Symbol.asyncDispose]() {
      inspector.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

type Reply = { readonly id: number; readonly result: { readonly result: { readonly value: unknown } } }

async function connect(url: string) {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  let last = 0
  return {
    close: () => socket.terminate(),
    send(method: string, params: object = {}): Promise<Reply['result']> {
      const id = ++last
      const { promise, resolve, reject } = Promise.withResolvers<Reply['result']>()
      const listen = (data: Buffer) => {
        const reply = JSON.parse(data.toString()) as Reply
        if (reply.id === id) settle(() => resolve(reply.result))
      }
      const fail = () => settle(() => reject(new Error(`the server has ended before it answered ${method}`)))
      const timer = setTimeout(fail, PATIENCE_MS)
      const settle = (end: () => void) => {
        clearTimeout(timer)
        socket.off('message', listen).off('close', fail)
        end()
      }
      socket.on('message', listen).on('close', fail)
      socket.send(JSON.stringify({ id, method, params }))
      return promise
    },
  }
}

async function metricsOf({ url }: TestServer): Promise<string> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })
  return await response.text()
}

function sumOf(name: string, metrics: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(name))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/** The pids of its processes, and of theirs. */
function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const parent = parentOf(name)
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const of = (parent: number): number[] => (children.get(parent) ?? []).flatMap((child) => [child, ...of(child)])
  return of(pid)
}

/** Undefined if the process has ended meanwhile. */
function parentOf(pid: string): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}
