/** What a run waits for, and who answers it: nobody, the lines of stdin while there are some, or other clients. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event } from '../../contract/events/event.ts'
import type { DeniedCall, Wait } from './answer-waits.ts'
import { answerWait, isWait } from './answer-waits.ts'

export class Waits {
  readonly #conversation: ConversationHandle
  readonly #failed = new AbortController()
  #hasAnswerer: boolean
  /** The waits, with those that were answered meanwhile. */
  #waiting: Wait[] = []
  #denied: DeniedCall[] = []

  /** `hasAnswerer` is true if somebody else answers, until `leave`. */
  constructor(conversation: ConversationHandle, hasAnswerer: boolean) {
    this.#conversation = conversation
    this.#hasAnswerer = hasAnswerer
  }

  /** Aborts with an error if something could not be answered: the run would wait forever. */
  get signal(): AbortSignal {
    return this.#failed.signal
  }

  async take(event: Event): Promise<void> {
    if (!isWait(event)) return
    if (this.#hasAnswerer) this.#waiting.push(event)
    else await this.#deny(event)
  }

  /** Nobody answers any more: what waits is denied, and what is asked later, too. */
  async leave(): Promise<void> {
    this.#hasAnswerer = false
    try {
      for (const event of this.#waiting.splice(0)) await this.#deny(event)
    } catch (error) {
      this.#failed.abort(error)
    }
  }

  /** Returns what was denied since the last call. */
  takeDenied(): readonly DeniedCall[] {
    return this.#denied.splice(0)
  }

  async #deny(event: Wait): Promise<void> {
    this.#denied.push(...(await answerWait(this.#conversation, event)))
  }
}
