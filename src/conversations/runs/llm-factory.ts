/** Creates the model client of a conversation with the credentials valid at that time; its answers are redacted and timed. */
import { createRedactedLlm } from '../../agent/model/redacted-llm.ts'
import type { LlmConfig } from '../../contract/llm-config.ts'
import type { Llm } from '../../llm/llm.ts'
import type { Dialects } from '../../llm/provider.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import { originOf } from '../config/llm-origin.ts'
import type { ConversationSecrets } from '../config/secrets.ts'
import { withLlmSecrets } from '../config/settings.ts'
import type { ModelAccess } from '../dependencies.ts'
import type { MetricsRecorder } from './metrics-recorder.ts'

export type LlmFactoryParts = {
  readonly models: ModelAccess
  readonly conversationId: string
  readonly secrets: ConversationSecrets
  readonly redactor: Redactor
  readonly recorder: Pick<MetricsRecorder, 'time'>
}

export function createLlmFactory({ models, conversationId, secrets, redactor, recorder }: LlmFactoryParts) {
  const dialects: Dialects = new Map()
  return (stored: LlmConfig): Llm => {
    const config = withLlmSecrets(stored, secrets.llmFor(originOf(stored)), models.defaults)
    const llm = models.createLlm({ ...redactor, config, dialects, conversationId })
    return createRedactedLlm(recorder.time(llm), redactor)
  }
}

/** Leaves out the metrics of runs, which do not include titles. */
export const createTitleLlmFactory = (
  { models }: Pick<LlmFactoryParts, 'models'>,
  { id: conversationId, ...parts }: Pick<LlmFactoryParts, 'secrets' | 'redactor'> & { readonly id: string },
) => createLlmFactory({ models, conversationId, ...parts, recorder: { time: (llm) => llm } })
