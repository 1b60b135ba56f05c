/**
 * Asks the user for a call that already runs. The question is in the log like any other; its answer goes to the call, and
 * the result of the call closes it, also after a crash.
 */
import type { EventDraft } from '../../contract/events/event.ts'
import type { Answers, AskedQuestion } from '../../contract/question.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Elicitation, ToolContext } from '../../tools/tool.ts'
import { closing } from '../../state/request-drafts.ts'

export type ElicitDeps = {
  readonly log: Pick<EventLog, 'append' | 'subscribe'>
  readonly runId: () => string | undefined
  readonly redact: (text: string) => string
}

/** The returned function rejects if the question could not be stored. */
export function createElicit({ log, runId, redact }: ElicitDeps): ToolContext['elicit'] {
  return async ({ toolUseId, server, questions, signal }: Elicitation): Promise<Answers | undefined> => {
    const id = uuid7()
    const { promise, resolve } = Promise.withResolvers<Answers | undefined>()
    const giveUp = () => resolve(undefined)
    // Subscribe before the question is stored: its answer could be missed otherwise.
    const unsubscribe = log.subscribe({
      onEvents: (events) => {
        for (const { event } of events)
          if (event.type === 'RequestAnswered' && event.kind === 'elicitation' && event.request_id === id)
            resolve(event.answer.answers)
      },
      onClose: giveUp,
    })
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      if (signal.aborted) return undefined
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
      const shown = mapStrings(questions, redact) as readonly AskedQuestion[]
      await log.append([opened(id, { toolUseId, server, questions: shown }, runId())])
      const answers = await promise
      // Without it, the result of the call ends the request: the log may be closed already.
      if (!answers) await log.append([closed(id, toolUseId, runId())]).catch(() => {})
      return answers
    } finally {
      signal.removeEventListener('abort', giveUp)
      unsubscribe()
    }
  }
}

const opened = (
  request_id: string,
  { toolUseId, server, questions }: Omit<Elicitation, 'signal'>,
  run_id: string | undefined,
): EventDraft => ({
  type: 'RequestOpened',
  source: 'environment',
  ...(run_id !== undefined && { run_id }),
  kind: 'elicitation',
  request_id,
  tool_use_ids: [toolUseId],
  payload: { server, questions: [...questions] },
})

const closed = (id: string, toolUseId: string, run_id: string | undefined): EventDraft => ({
  ...closing({ kind: 'elicitation', request_id: id, tool_use_ids: [toolUseId] }, 'interrupted'),
  ...(run_id !== undefined && { run_id }),
})
