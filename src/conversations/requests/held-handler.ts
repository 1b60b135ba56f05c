/** Requests that a running call holds, of any kind: their answer is what the call gets. */
import type { AnswerOf, OpenRequestOf } from '../../contract/request.ts'
import { hasForm } from '../../contract/requests/request-forms.ts'
import type { HeldKind } from '../../contract/requests/request-kinds.ts'
import { partOf } from '../../contract/requests/request-kinds.ts'
import type { EventLog } from '../../events/event-log.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import type { AnswerHeldIntent, StoredAnswerOf } from '../../state/held-intents.ts'
import type { OutsideRequest, ToolContext } from '../../tools/tool.ts'
import type { IntentInbox } from '../live/inbox.ts'
import { findClosed } from './closed-requests.ts'
import type { HeldRequests } from './held-requests.ts'
import { matchOrThrow, redactAnswers, sameAnswers } from './match-answers.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'

export type HeldDeps = {
  readonly log: EventLog
  readonly heldRequests: HeldRequests
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

type Answer = AnswerOf<HeldKind>

export class HeldHandler implements RequestHandler<HeldKind> {
  readonly #kind: HeldKind
  readonly #deps: HeldDeps

  constructor(kind: HeldKind, deps: HeldDeps) {
    this.#kind = kind
    this.#deps = deps
  }

  open(): OpenRequestOf<HeldKind>[] {
    return this.#deps.heldRequests.views(this.#kind)
  }

  redact(answer: Answer): Answer {
    const { redact } = this.#deps
    const { kind, ...givenAnswer } = answer
    const redactedFields = hasForm(answer, 'questions')
      ? { answers: redactAnswers(answer.answers, redact) }
      : mapFields(givenAnswer, redact)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    return { kind, ...redactedFields } as Answer
  }

  check(requestId: string, answer: Answer): void {
    const request = this.#deps.heldRequests.get(this.#kind, requestId)
    if (request) storedForm(request.view, answer)
  }

  async answer(requestId: string, givenAnswer: Answer, keyName: string | undefined): Promise<boolean> {
    const { heldRequests, actor } = this.#deps
    return await actor.enqueue(async () => {
      const request = heldRequests.get(this.#kind, requestId)
      if (!request) return false
      const answer = storedForm(request.view, givenAnswer)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and answer belong together
      const intent = {
        kind: 'answer_held',
        requestId,
        answer: { kind: this.#kind, answer },
        keyName,
      } as AnswerHeldIntent
      await request.answer(answer, () => actor.apply(intent))
      return true
    })
  }

  async compare(requestId: string, givenAnswer: Answer): Promise<EarlierAnswer> {
    const { log } = this.#deps
    const closedRequest = await findClosed(log, this.#kind, requestId)
    if (!closedRequest) return 'unknown'
    const [earlier] = closedRequest.answers
    if (!earlier) return 'none'
    const { opened } = closedRequest
    const storedAnswer = this.redact(asGiven(opened.kind, earlier.answer))
    if (hasForm(opened, 'questions') && hasForm(givenAnswer, 'questions') && hasForm(storedAnswer, 'questions'))
      return sameAnswers(opened.payload.questions, givenAnswer.answers, storedAnswer.answers)
    const [now, then] = [givenAnswer, storedAnswer].map((answer) =>
      canonicalJson(partOf(this.#kind, 'answered').parse(answer)),
    )
    return now === then ? 'same' : 'other'
  }
}

/** Returns what is stored of an answer in the form of one that is given. */
const asGiven = (kind: HeldKind, storedAnswer: object): Answer =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is stored of an answer is a part of it
  ({ kind, ...storedAnswer }) as Answer

/** Returns what the log has of an answer. Throws the `Problem` of one that does not fit the request. */
function storedForm(request: OpenRequestOf<HeldKind>, answer: Answer): StoredAnswerOf<HeldKind> {
  if (hasForm(request, 'questions') && hasForm(answer, 'questions'))
    return { answers: matchOrThrow(request.payload.questions, answer.answers) }
  return partOf(request.kind, 'answered').parse(answer)
}

/** How tools ask. The returned function rejects if the request could not be stored. */
export const createOpenRequest =
  (heldRequests: HeldRequests, redact: (text: string) => string): ToolContext['openRequest'] =>
  async <K extends HeldKind>({ payload, ...request }: OutsideRequest<K>) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    const end = await heldRequests.hold({ ...request, payload: mapFields(payload, redact) as typeof payload })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an answer to a request of this kind
    return end.by === 'answer' ? (end.answer as StoredAnswerOf<K>) : undefined
  }

const mapFields = (fields: object, map: (text: string) => string): object =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, mapStrings(value, map)]))
