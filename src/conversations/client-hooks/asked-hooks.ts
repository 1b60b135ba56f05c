/** The requests to clients as clients see them: which wait, and how a client answers one. */
import { createHash } from 'node:crypto'
import type { HookAnswerAccepted, HookRequests, PostHookAnswer } from '../../contract/hooks/client-hooks.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import { Problem } from '../../contract/problem.ts'
import type { HookAnswer } from '../../hooks/hook-answer.ts'
import { readAnswer, UnreadableAnswer } from '../../hooks/hook-answer.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import type { WaitingHooks } from './waiting-hooks.ts'

export class AskedHooks {
  readonly #waiting: WaitingHooks

  constructor(waiting: WaitingHooks) {
    this.#waiting = waiting
  }

  /** Of all clients, or of one. */
  pending(client?: string): HookRequests {
    const items = this.#waiting.requests()
    return { items: client === undefined ? items : items.filter((request) => request.client === client) }
  }

  /**
   * Ends a request. The first answer counts; the same one again changes nothing. Throws a `Problem` for an answer that
   * cannot be read, after which the request still waits, and for a request that is unknown or has ended.
   */
  answer(requestId: string, { output, text, error }: PostHookAnswer): HookAnswerAccepted {
    const hash = createHash('sha256').update(canonicalJson({ output, text, error })).digest('base64')
    const waiting = this.#waiting.get(requestId)
    if (!waiting) return this.#accept(this.#hashOf(requestId) === hash)
    const given = [output, text, error].filter((each) => each !== undefined)
    if (given.length !== 1) throw new Problem('invalid_request', 'Send one of output, text and error.')
    const { resolve, reject, request } = waiting
    const answer = error === undefined ? read(request.hook_point, text ?? JSON.stringify(output)) : undefined
    this.#waiting.answered(requestId, hash)
    if (answer) resolve(answer)
    else reject(new Error(error))
    return this.#accept(true, request.client)
  }

  #accept(isFirst: boolean, client?: string): HookAnswerAccepted {
    if (!isFirst) throw answeredBefore()
    return { pending: this.pending(client).items.length }
  }

  #hashOf(requestId: string): string {
    const ended = this.#waiting.ended(requestId)
    if (!ended) throw requestNotFound()
    if (ended.hash === undefined) throw requestEnded()
    return ended.hash
  }
}

/** Not a failure of the hook: its client can still answer. */
function read(point: HookPoint, said: string): HookAnswer {
  try {
    return readAnswer(point, said)
  } catch (error) {
    if (!(error instanceof UnreadableAnswer)) throw error
    throw new Problem(
      'invalid_request',
      `The answer is not one of a hook: ${error.message}. The request still waits.`,
      { cause: error },
    )
  }
}

const requestNotFound = () =>
  new Problem(
    'hook_request_not_found',
    'No request to a client has this id here. It is unknown, of another conversation, or from before a restart of the server. GET hook-requests lists those that wait.',
  )

const requestEnded = () =>
  new Problem(
    'hook_request_ended',
    'This request has ended without an answer: by its deadline, an interruption, or because its hooks were removed. Nothing is left to answer.',
  )

const answeredBefore = () =>
  new Problem('already_answered', 'This request was answered before; the first answer counts.')
