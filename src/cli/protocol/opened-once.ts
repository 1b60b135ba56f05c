/** The host of a process, opened when it is needed first. */
import type { RunInvocation } from '../command-line/run-options.ts'
import type { ProtocolHost } from './protocol-host.ts'
import { openProtocolHost } from './protocol-host.ts'

/** What failed is tried again by the next one who needs it: a person may have set what was missing. */
export class OpenedOnce implements AsyncDisposable {
  readonly #run: RunInvocation
  readonly #abort = new AbortController()
  #opening: Promise<ProtocolHost> | undefined

  constructor(run: RunInvocation) {
    this.#run = run
  }

  async open(): Promise<ProtocolHost> {
    const opening = (this.#opening ??= openProtocolHost(this.#run, this.#abort.signal))
    try {
      return await opening
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    const host = await this.#opening?.catch(() => undefined) // reported to who asked
    await host?.[Symbol.asyncDispose]()
  }
}
