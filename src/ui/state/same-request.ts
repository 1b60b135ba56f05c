/**
 * Requests that a person begins again: nobody knows whether one whose answer was lost has arrived, so that the same one is
 * sent with the same key until it is answered, and has its effect once.
 */
import type { CallOptions } from '../../client/client.ts'

/** Sends requests of one kind. */
export class SameRequest {
  #content: string | undefined
  #key = ''

  /** `content` says whether a request is the same as the one before. */
  async send<T>(content: string, send: (options: CallOptions) => Promise<T>): Promise<T> {
    if (this.#content !== content) this.#key = crypto.getRandomValues(new Uint32Array(4)).join('-')
    this.#content = content
    const reply = await send({ idempotencyKey: this.#key })
    this.forget()
    return reply
  }

  /** The next request is another one, whatever it says. */
  forget(): void {
    this.#content = undefined
  }
}
