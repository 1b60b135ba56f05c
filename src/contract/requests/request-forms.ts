/**
 * What clients do with requests of any kind: they know forms, and no kinds. It takes only the forms of the table: the dashboard
 * is built with these alone.
 */
import type { AnswerOf } from '../request.ts'
import type { DecisionForm, Form } from './form.ts'
import { fill } from './form.ts'
import type { RequestKind } from './request-kinds.ts'
import { REQUESTS } from './request-kinds.ts'

/** The kinds with one of these forms. */
export type KindOfForm<Is extends Form['is']> = {
  [K in RequestKind]: (typeof REQUESTS)[K]['form']['is'] extends Is ? K : never
}[RequestKind]

/** A client can meet kinds of a newer server, which have none. */
const FORMS: ReadonlyMap<string, Form> = new Map(Object.entries(REQUESTS).map(([kind, { form }]) => [kind, form]))

type OfKind<K extends RequestKind> = { readonly kind: K; readonly payload: object }

export const hasForm = <Is extends Form['is'], Request extends { readonly kind: RequestKind }>(
  request: Request,
  is: Is,
): request is Extract<Request, { readonly kind: KindOfForm<Is> }> => FORMS.get(request.kind)?.is === is

/** False for what programs answer. */
export const isForPeople = <Request extends { readonly kind: RequestKind }>(
  request: Request,
): request is Extract<Request, { readonly kind: KindOfForm<'calls' | 'questions' | 'decision'> }> =>
  (FORMS.get(request.kind)?.is ?? 'program') !== 'program'

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const KINDS_FOR_PEOPLE = (Object.keys(REQUESTS) as RequestKind[]).filter((kind) => isForPeople({ kind }))

export const titleOfRequest = ({ kind }: { readonly kind: RequestKind }): Form['title'] =>
  FORMS.get(kind)?.title ?? { english: kind, german: kind }

/** The texts of a decision, with the fields of its payload. */
export function decisionOf({ kind, payload }: OfKind<KindOfForm<'decision'>>): DecisionForm {
  const form: DecisionForm = REQUESTS[kind].form
  const { sentence, remembered } = form
  return {
    ...form,
    subject: fill(form.subject, payload),
    short: fill(form.short, payload),
    sentence: { english: fill(sentence.english, payload), german: fill(sentence.german, payload) },
    action: fill(form.action, payload),
    matter: fill(form.matter, payload),
    ...(remembered !== undefined && { remembered: fill(remembered, payload) }),
  }
}

type DecisionAnswer = AnswerOf<KindOfForm<'decision'>>

/** Returns the answer to a decision. */
export function decide(
  kind: KindOfForm<'decision'>,
  behavior: DecisionAnswer['behavior'],
  remember = false,
): DecisionAnswer {
  const { remembered }: DecisionForm = REQUESTS[kind].form
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a kind that remembers is the one whose answer has it
  return { kind, behavior, ...(remembered !== undefined && { remember }) } as DecisionAnswer
}

/** The noun of questions, and what a client that nobody answers sends: undefined if they rest until somebody does. */
export function questionForm(kind: KindOfForm<'questions'>): {
  readonly noun: string
  readonly unanswered: { readonly answers: Readonly<Record<string, string>> } | undefined
} {
  const { noun, unanswered } = REQUESTS[kind].form
  return { noun, unanswered: unanswered === undefined ? undefined : { answers: { '0': unanswered } } }
}
