/** Starts the model server for measurements, and asks it what it has seen. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** What a user's message asks of the model, as JSON: so many tool calls, one a turn, then a text of so many pieces. */
export type Plan = {
  readonly steps?: number
  readonly pieces?: number
  readonly gapMs?: number
  /** Each call writes a file. */
  readonly writes?: boolean
  /** How long the model takes to answer with a call. */
  readonly thinkMs?: number
}

/** Milliseconds, on the clock that all processes of the machine share. */
export type Exchange = { readonly came: number; readonly ended: number }

export type ModelReport = { readonly url: string } | { readonly exchanges: readonly Exchange[] }

export type ModelProcess = AsyncDisposable & {
  readonly url: string
  /** Returns the exchanges since the last question. */
  readonly exchanges: () => Promise<readonly Exchange[]>
}

export async function startModel(): Promise<ModelProcess> {
  const child = fork(join(import.meta.dirname, 'model.ts'))
  const next = async () => (await once(child, 'message'))[0] as ModelReport
  const first = await next()
  if (!('url' in first)) throw new Error('the model did not say where it listens')
  return {
    url: first.url,
    async exchanges() {
      child.send('exchanges')
      const answer = await next()
      return 'exchanges' in answer ? answer.exchanges : []
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** Returns the times from the end of each answer to the next request: what the agent itself takes for a step. */
export function stepTimes(exchanges: readonly Exchange[]): number[] {
  return exchanges.slice(1).map(({ came }, i) => came - exchanges[i]!.ended)
}
