/** What a run waits for as interrupts, and the answers to them. The only file that knows the form of both. */
import { z } from 'zod'
import type { EventOf } from '../../contract/events/event.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { AnswerRequest } from '../../contract/request.ts'
import type { AskedQuestion } from '../../contract/values/question.ts'
import type { KindOfForm } from '../../contract/requests/request-forms.ts'
import { decide, decisionOf, hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import { argumentsOf } from './ag-ui-event.ts'
import type { ResumeEntry } from './run-input.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { textOfQuestion } from '../shared/question-text.ts'

export type AgUiInterrupt = { readonly id: string; readonly reason: string; readonly [field: string]: unknown }

/** Hooks and results of tools are answered elsewhere. */
type OpenInterrupt = Extract<OpenRequest, { kind: InterruptKind }>
type InterruptKind = KindOfForm<'calls' | 'questions' | 'decision'>
type OpenedEvent = Extract<EventOf<'RequestOpened'>, { kind: InterruptKind }>

/** `callIds`: those of its calls that still wait. */
export function interruptsOf(
  request: OpenedEvent,
  callIds: ReadonlySet<string>,
  subagentRunId: string | undefined,
): AgUiInterrupt[] {
  const { deadline } = request
  const more = {
    ...(deadline !== undefined && { expiresAt: deadline }),
    ...(subagentRunId !== undefined && { subagentRunId }),
  }
  if (request.kind === 'permission')
    return request.payload.tool_uses
      .filter(({ tool_use_id: id }) => callIds.has(id))
      .map(({ tool_use_id: id, name, input, reason }) => ({
        id: interruptId(request, id),
        reason: 'tool_approval',
        message: `${name} ${argumentsOf(input)}\n${reason}`,
        toolCallId: id,
        responseSchema: APPROVAL_SCHEMA,
        ...more,
      }))
  const [toolCallId] = request.tool_use_ids
  const of = { id: interruptId(request, toolCallId), ...(toolCallId !== undefined && { toolCallId }), ...more }
  if (hasForm(request, 'decision')) {
    const message = `${decisionOf(request).opening} ${argumentsOf(request.payload)}`
    return [{ reason: `${request.kind}_approval`, message, responseSchema: APPROVAL_SCHEMA, ...of }]
  }
  const { questions } = request.payload
  return [
    {
      reason: 'question',
      message: questions.map(textOfQuestion).join('\n\n'),
      responseSchema: schemaOf(questions),
      ...of,
    },
  ]
}

const interruptId = ({ request_id }: { readonly request_id: string }, toolUseId: string | undefined): string =>
  toolUseId === undefined ? request_id : `${request_id}:${toolUseId}`

const APPROVAL_SCHEMA = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Arguments that are used instead.' },
    message: { type: 'string', description: 'Why it is denied, for the agent.' },
  },
  required: ['approved'],
}

function schemaOf(questions: readonly AskedQuestion[]): object {
  const properties = questions.map(({ question, options, multi_select: isMultiple }, at) => {
    const text = { type: 'string', examples: options.map(({ label }) => label) }
    return [String(at), { title: question, ...(isMultiple ? { type: 'array', items: text } : text) }]
  })
  const answers = { type: 'object', properties: Object.fromEntries(properties) }
  return { type: 'object', properties: { answers }, required: ['answers'] }
}

/**
 * Returns an answer to each request that waits, or throws a `Problem` and decides nothing: what has no entry is never decided.
 * Entries about other interrupts are ignored, as the protocol says: somebody may have answered these.
 */
export function answersToInterrupts(open: readonly OpenInterrupt[], entries: readonly ResumeEntry[]): GivenAnswer[] {
  const entryById = new Map(entries.map((entry) => [entry.interruptId, entry]))
  if (entryById.size < entries.length) throw invalid('resume', 'has several entries for one interrupt')
  const entryFor = (request: OpenInterrupt, toolUseId: string | undefined): ResumeEntry => {
    const id = interruptId(request, toolUseId)
    const entry = entryById.get(id)
    if (entry) return entry
    throw invalid('resume', `has no entry for the interrupt ${id}; send one for each that is open`)
  }
  return open.map((request) => ({ requestId: request.request_id, answer: answerTo(request, entryFor) }))
}

type FindEntry = (request: OpenInterrupt, toolUseId: string | undefined) => ResumeEntry

function answerTo(request: OpenInterrupt, entryFor: FindEntry): AnswerRequest {
  if (request.kind === 'permission') {
    const decisions = request.payload.tool_uses
      .filter(({ decision }) => decision === undefined)
      .map(({ tool_use_id, input_hash }) => ({
        tool_use_id,
        input_hash,
        ...decisionIn(entryFor(request, tool_use_id)),
      }))
    return parseField(AnswerRequest, { kind: 'permission', decisions })
  }
  const entry = entryFor(request, request.tool_use_ids[0])
  if (hasForm(request, 'decision')) return decide(request.kind, decisionIn(entry).behavior)
  return parseField(AnswerRequest, { kind: request.kind, answers: answersIn(entry, request.kind) })
}

const Approval = z.looseObject({
  approved: z.boolean(),
  editedArgs: z.record(z.string(), z.unknown()).nullish(),
  message: z.string().nullish(),
})

type InterruptDecision = {
  readonly behavior: 'allow' | 'deny'
  readonly updated_input?: object
  readonly message?: string
}

/** Approves only by the word that it is approved. */
function decisionIn({ status, payload }: ResumeEntry): InterruptDecision {
  if (status === 'cancelled') return { behavior: 'deny' }
  const approval = Approval.safeParse(typeof payload === 'boolean' ? { approved: payload } : payload)
  if (!approval.success) throw invalid('resume', 'must have a payload with approved: true or false')
  const { approved, editedArgs, message } = approval.data
  return approved
    ? { behavior: 'allow', ...(editedArgs && { updated_input: editedArgs }) }
    : { behavior: 'deny', ...(typeof message === 'string' && { message }) }
}

/** A form that is held is declined: any other text would be the value of its first field. A text answers the first question. */
function answersIn({ status, payload }: ResumeEntry, kind: KindOfForm<'questions'>): unknown {
  if (status === 'cancelled') return questionForm(kind).unanswered?.answers ?? { '0': 'The user has not answered.' }
  if (typeof payload === 'string') return { '0': payload }
  return Object(payload)['answers']
}
