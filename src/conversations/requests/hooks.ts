/** Hooks that a client answers. In memory only: they end with their call, and do not survive the server. */
import { createHash } from 'node:crypto'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import { Problem } from '../../contract/problem.ts'
import type { AnswerOf, OpenRequestOf } from '../../contract/request.ts'
import type { HookAnswer } from '../../hooks/hook-answer.ts'
import { readAnswer, UnreadableAnswer } from '../../hooks/hook-answer.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import type { WaitingHooks } from '../client-hooks/waiting-hooks.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'

type Answer = AnswerOf<'hook'>

export class HookRequests implements RequestHandler<'hook'> {
  readonly #waiting: WaitingHooks

  constructor(waiting: WaitingHooks) {
    this.#waiting = waiting
  }

  /** The input of a hook is shown to its client only. */
  open(reader?: string): OpenRequestOf<'hook'>[] {
    return this.#waiting
      .requests()
      .filter(({ client }) => reader === undefined || client === reader)
      .map(({ request_id, timestamp, deadline, client, hook_id, hook_point, payload: input }) => ({
        kind: 'hook',
        request_id,
        opened_at: timestamp,
        deadline,
        tool_use_ids: [input['tool_use_id']].filter((id) => typeof id === 'string'),
        payload: { client, hook_id, hook_point, ...(reader !== undefined && { input }) },
      }))
  }

  /** The program that asks redacts what it stores of the answer. */
  redact(answer: Answer): Answer {
    return answer
  }

  /** An answer that cannot be read is not a failure of the hook: its client can still answer. */
  async answer(requestId: string, answer: Answer): Promise<boolean> {
    const waiting = this.#waiting.get(requestId)
    if (!waiting) return false
    const { output, text, error } = answer
    const givenForms = [output, text, error].filter((each) => each !== undefined)
    if (givenForms.length !== 1) throw new Problem('invalid_request', 'Send one of output, text and error.')
    const { resolve, reject, request } = waiting
    const hookAnswer = error === undefined ? readOutput(request.hook_point, text ?? JSON.stringify(output)) : undefined
    this.#waiting.answered(requestId, hashOf(answer))
    if (hookAnswer) resolve(hookAnswer)
    else reject(new Error(error))
    return true
  }

  async compare(requestId: string, answer: Answer): Promise<EarlierAnswer> {
    const endedRequest = this.#waiting.ended(requestId)
    if (!endedRequest) return 'unknown'
    if (endedRequest.hash === undefined) return 'none'
    return endedRequest.hash === hashOf(answer) ? 'same' : 'other'
  }
}

const hashOf = ({ output, text, error }: Answer) =>
  createHash('sha256').update(canonicalJson({ output, text, error })).digest('base64')

function readOutput(point: HookPoint, outputText: string): HookAnswer {
  try {
    return readAnswer(point, outputText)
  } catch (error) {
    if (!(error instanceof UnreadableAnswer)) throw error
    throw new Problem(
      'invalid_request',
      `The answer is not one of a hook: ${error.message}. The request still waits.`,
      { cause: error },
    )
  }
}
