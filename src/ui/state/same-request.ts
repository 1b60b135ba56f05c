/**
 * Requests that a person begins again: nobody knows whether one whose answer was lost has arrived, so that the same one is
 * sent with the same key until it is answered, and has its effect once.
 */
import type { CallOptions } from '../../client/client.ts'
import { remember, rememberedValue } from './remembered.ts'

/** Sends requests of one kind. */
export class SameRequest {
  readonly #name: string | undefined
  #content: string | undefined
  #key = ''

  /** The browser keeps a request with a name: a page that is loaded again, and another tab, send the same one, too. */
  constructor(name?: string) {
    this.#name = name
  }

  /** `content` says whether a request is the same as the one before. */
  async send<T>(content: string, send: (options: CallOptions) => Promise<T>): Promise<T> {
    this.#read()
    if (this.#content !== content) this.#key = crypto.getRandomValues(new Uint32Array(4)).join('-')
    this.#content = content
    const keptText = `${this.#key} ${content}`
    if (this.#name !== undefined) remember(this.#name, keptText)
    const reply = await send({ idempotencyKey: this.#key })
    // Another tab may wait for the answer to another one by now.
    if (this.#name === undefined || rememberedValue(this.#name) === keptText) this.forget()
    return reply
  }

  /** The next request is another one, whatever it says. */
  forget(): void {
    this.#content = undefined
    if (this.#name !== undefined) remember(this.#name, undefined)
  }

  #read(): void {
    if (this.#name === undefined) return
    const keptText = rememberedValue(this.#name)
    const end = keptText?.indexOf(' ') ?? -1
    this.#content = keptText?.slice(end + 1)
    this.#key = keptText?.slice(0, end) ?? ''
  }
}
