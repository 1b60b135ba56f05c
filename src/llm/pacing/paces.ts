/** The paces of all endpoints of a server. Providers limit a key, and mostly each model of it separately. */
import { createHash } from 'node:crypto'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { EndpointPace } from './endpoint-pace.ts'

/** Clients may name any number of endpoints; a forgotten one only starts again without a limit. */
const MAX_PACES = 1000

export class Paces {
  readonly #paces = new Map<string, EndpointPace>()

  of({ baseUrl, model, headers }: Endpoint): EndpointPace {
    // A hash, so that no key is kept here.
    const name = createHash('sha256')
      .update(JSON.stringify([baseUrl, model, headers]))
      .digest('base64')
    const pace = this.#paces.get(name) ?? new EndpointPace()
    this.#paces.delete(name)
    this.#paces.set(name, pace)
    const [oldest] = this.#paces.keys()
    if (this.#paces.size > MAX_PACES && oldest !== undefined) this.#paces.delete(oldest)
    return pace
  }
}
