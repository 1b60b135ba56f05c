/** Calls of client tools: a client executes them, and answers with the result. */
import { redactOutput } from '../../agent/redact-output.ts'
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { outcomeOf } from '../../state/client-outcome.ts'
import type { WaitingCalls } from '../client-tools/waiting-calls.ts'
import type { HeldActor } from './elicitations.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'

export type ClientCallsDeps = {
  readonly log: EventLog
  readonly waiting: WaitingCalls
  readonly redact: (text: string) => string
  readonly actor: HeldActor
}

type Answer = AnswerOf<'client_tool'>

export class ClientCalls implements RequestHandler<'client_tool'> {
  readonly #deps: ClientCallsDeps

  constructor(deps: ClientCallsDeps) {
    this.#deps = deps
  }

  open() {
    return this.#deps.waiting.views()
  }

  redact(answer: Answer): Answer {
    const { kind, is_error } = answer
    return { kind, output: redactOutput(answer.output, this.#deps.redact) ?? null, is_error }
  }

  async answer(
    requestId: string,
    { output, is_error: isError }: Answer,
    keyName: string | undefined,
  ): Promise<boolean> {
    const { waiting, actor } = this.#deps
    return await actor.inTurn(async () => {
      const call = waiting.get(requestId)
      await call?.answer(async () => {
        const answer = { kind: 'client_tool', answer: { output, is_error: isError } } as const
        await actor.apply({ kind: 'answer_held', requestId, answer, keyName })
        return outcomeOf({ output, isError })
      })
      return call !== undefined
    })
  }

  async compare(requestId: string, { output, is_error }: Answer): Promise<EarlierAnswer> {
    const closed = await findClosed(this.#deps.log, 'client_tool', requestId)
    if (!closed) return 'unknown'
    const [stored] = closed.answers
    if (!stored) return 'none'
    return canonicalJson(stored.answer) === canonicalJson({ output, is_error }) ? 'same' : 'other'
  }
}
