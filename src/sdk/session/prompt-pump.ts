/** Posts the messages of a prompt, one after the other, each when the program yields it. */
import type { UserInput } from '../../contract/message.ts'
import { invalid } from '../invalid.ts'
import type { Prompt, PromptMessage } from '../options/query-options.ts'

export type PumpDeps = {
  /** Returns the seq of the message. */
  readonly post: (content: UserInput['content'], isFirst: boolean) => Promise<number>
  readonly onPosted: (seq: number) => void
  readonly onEnd: () => void
  readonly onError: (error: unknown) => void
}

export class PromptPump {
  readonly #deps: PumpDeps
  readonly #messages: AsyncIterator<PromptMessage>
  #isClosed = false

  /** Throws if the prompt is neither text nor an iterable of messages. */
  constructor(prompt: Prompt, deps: PumpDeps) {
    this.#deps = deps
    this.#messages = messagesOf(prompt)[Symbol.asyncIterator]()
  }

  /** Works in the background. Errors go to `onError`. */
  start(): void {
    this.#run().then(
      () => this.#isClosed || this.#deps.onEnd(),
      (error: unknown) => this.#isClosed || this.#deps.onError(error),
    )
  }

  /** The program may still be waiting for its next message: nobody waits for it here. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const closed = async () => void (await this.#messages.return?.())
    closed().catch(() => {}) // the query has ended: there is no reader of the error
  }

  async #run(): Promise<void> {
    for (let isFirst = true; !this.#isClosed; isFirst = false) {
      const { value, done } = await this.#messages.next()
      if (done || this.#isClosed) return
      this.#deps.onPosted(await this.#deps.post(contentOf(value), isFirst))
    }
  }
}

function messagesOf(prompt: Prompt): AsyncIterable<PromptMessage> {
  const isIterable = typeof prompt === 'object' && Symbol.asyncIterator in prompt
  if (isIterable) return prompt
  return (async function* () {
    yield prompt
  })()
}

/** The server checks the parts. */
function contentOf(message: PromptMessage): UserInput['content'] {
  if (typeof message === 'string') return message
  // Programs without types can pass anything.
  const given: unknown = message
  if (typeof given === 'object' && given !== null && 'content' in given) return message.content
  throw invalid('A message of the prompt is neither text nor an object with content.')
}
