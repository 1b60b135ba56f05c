/** What the loop does about the output schema of a run: it asks for the output, checks it, and asks once more. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { LoopEnd } from '../loop-end.ts'
import type { OutputSchema } from '../../state/run-state.ts'
import { validateOutput } from './output-schema.ts'

export type OutputContext = {
  readonly runId: string
  readonly schema: OutputSchema
  /** Returns how often the run has asked for the output. */
  readonly requests: () => number
}

/** The first request, and one repair attempt. */
const MAX_REQUESTS = 2

type Emit = (drafts: readonly EventDraft[]) => Promise<void>

/** Tells the model which output is expected, once in a run. */
export async function requestOutput({ runId, schema, requests }: OutputContext, emit: Emit): Promise<void> {
  if (requests() > 0) return
  await emit([{ type: 'OutputRequest', source: 'environment', run_id: runId, output_schema: schema }])
}

/** Returns the end of the run with its output; undefined if the answer of an earlier run does not fit the schema. */
export async function endIfValid({ schema }: OutputContext, end: LoopEnd, text: string): Promise<LoopEnd | undefined> {
  const validation = await validateOutput(schema, text)
  return 'value' in validation ? { ...end, structuredOutput: validation.value } : undefined
}

/** Returns the end of the run with its output, or undefined if the model is asked again. */
export async function endWithOutput(
  { runId, schema, requests }: OutputContext,
  end: LoopEnd,
  text: string,
  emit: Emit,
): Promise<LoopEnd | undefined> {
  const validation = await validateOutput(schema, text)
  if ('value' in validation) return { ...end, structuredOutput: validation.value }
  if (requests() < MAX_REQUESTS) {
    await emit([{ type: 'OutputRequest', source: 'environment', run_id: runId, fault: validation.fault }])
    return undefined
  }
  const message = `The answer is not valid for output_schema: ${validation.fault}. Change the message or the schema, or use another model.`
  return { stopReason: 'error', failure: { type: 'config', message, retryable: true } }
}
