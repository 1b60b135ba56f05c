/** Posts the messages of a prompt, one after the other, each when the program yields it. */
import type { UserInput } from '../../contract/values/message.ts'
import { invalid } from '../errors/invalid.ts'
import type { Prompt, PromptMessage } from '../options/query-options.ts'

export type PumpDeps = {
  readonly post: (content: UserInput['content'], isFirst: boolean) => Promise<void>
  /** `isEmpty`: the prompt had no message. */
  readonly onEnd: (isEmpty: boolean) => void
  readonly onError: (error: unknown) => void
}

export class PromptPump {
  readonly #deps: PumpDeps
  readonly #messages: AsyncIterator<PromptMessage>
  #isClosed = false
  #hasMessage = false

  /** Throws if the prompt is neither text nor an iterable of messages. Undefined has no messages. */
  constructor(prompt: Prompt | undefined, deps: PumpDeps) {
    this.#deps = deps
    this.#messages = iteratorOf(messagesOf(prompt))
  }

  /** Returns true if the prompt has had a message. */
  get hasMessage(): boolean {
    return this.#hasMessage
  }

  /** Works in the background. Errors go to `onError`. */
  start(): void {
    this.#run().then(
      () => this.#isClosed || this.#deps.onEnd(!this.#hasMessage),
      (error: unknown) => this.#isClosed || this.#deps.onError(error),
    )
  }

  /** The program may still be waiting for its next message: nobody waits for it here. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const closing = async () => void (await this.#messages.return?.())
    closing().catch(() => {}) // the query has ended: there is no reader of the error
  }

  async #run(): Promise<void> {
    for (let isFirst = true; !this.#isClosed; isFirst = false) {
      const next: IteratorResult<PromptMessage> | null = await this.#messages.next()
      if (typeof next !== 'object' || next === null) throw invalid('next() of the prompt returned no object.')
      const { value, done } = next
      if (done || this.#isClosed) return
      this.#hasMessage = true
      await this.#deps.post(contentOf(value), isFirst)
    }
  }
}

/** Programs without types can pass anything. */
function iteratorOf(messages: AsyncIterable<PromptMessage>): AsyncIterator<PromptMessage> {
  const iterator: unknown = messages[Symbol.asyncIterator]()
  const isOne = typeof iterator === 'object' && iterator !== null && 'next' in iterator
  if (!isOne || typeof iterator.next !== 'function')
    throw invalid('The prompt is not an async iterable: it has no next().')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what was just checked
  return iterator as AsyncIterator<PromptMessage>
}

function messagesOf(prompt: Prompt | undefined): AsyncIterable<PromptMessage> {
  if (prompt !== undefined && isIterable(prompt)) return prompt
  return (async function* () {
    if (prompt !== undefined) yield prompt
  })()
}

export const isIterable = (prompt: Prompt): prompt is Extract<Prompt, AsyncIterable<unknown>> =>
  typeof prompt === 'object' && Symbol.asyncIterator in prompt

/** The server checks the parts. */
function contentOf(message: PromptMessage): UserInput['content'] {
  if (typeof message === 'string') return message
  // Programs without types can pass anything.
  const givenMessage: unknown = message
  if (typeof givenMessage === 'object' && givenMessage !== null && 'content' in givenMessage) return message.content
  throw invalid('A message of the prompt is neither text nor an object with content.')
}
