/** Creates the model client of a conversation with the credentials valid at that time; its answers are redacted and timed. */
import { createRedactedLlm } from '../../agent/model/redacted-llm.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { createKeyedLlm } from '../../llm/keyed-llm.ts'
import type { Llm } from '../../llm/llm.ts'
import type { Dialects } from '../../llm/provider.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import { originOf } from '../config/llm-origin.ts'
import type { ConversationSecrets } from '../config/secrets.ts'
import { requireKey, serverKeyFor } from '../config/llm-origin.ts'
import { withLlmSecrets } from '../config/settings.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { LlmDefaults } from '../config/llm-origin.ts'
import type { MetricsRecorder } from './metrics-recorder.ts'

export type ModelAccess = {
  /** What is known about models. */
  readonly catalog: ModelCatalog
  readonly defaults: LlmDefaults
  /** Returns why the operator allows no model request to this URL, as a clause. */
  readonly endpointRefusal: (url: string) => Promise<string | undefined>
  readonly createLlm: (
    options: Pick<Redactor, 'redact' | 'redactCutOff'> & {
      config: LlmConfig
      /** What this conversation has learnt about its endpoints. */
      dialects: Dialects
      conversationId: string
    },
  ) => Llm
}

export type LlmFactoryParts = {
  readonly models: ModelAccess
  readonly conversationId: string
  readonly secrets: ConversationSecrets
  readonly redactor: Redactor
  readonly recorder: Pick<MetricsRecorder, 'time'>
}

/** Nothing that it returns throws: missing credentials are errors of the requests, like all others. */
export function createLlmFactory({ models, conversationId, secrets, redactor, recorder }: LlmFactoryParts) {
  const dialects: Dialects = new Map()
  const withCredentials = (storedConfig: LlmConfig): Llm => {
    try {
      const config = withLlmSecrets(storedConfig, secrets.llmFor(originOf(storedConfig)))
      const create = (own: LlmConfig) => models.createLlm({ ...redactor, config: own, dialects, conversationId })
      if (config.api_key !== undefined) return create(config)
      const serverKey = serverKeyFor(config, models.defaults)
      if (!serverKey) requireKey(config, models.defaults)
      if (!serverKey || 'key' in serverKey) return create({ ...config, ...(serverKey && { api_key: serverKey.key }) })
      const { model = '' } = config
      return createKeyedLlm({ model, command: serverKey.command, create: (key) => create({ ...config, api_key: key }) })
    } catch (error) {
      return refusing(storedConfig, error)
    }
  }
  return (storedConfig: LlmConfig): Llm => createRedactedLlm(recorder.time(withCredentials(storedConfig)), redactor)
}

/** A model that answers each request with this error. */
const refusing = ({ model = '' }: LlmConfig, error: unknown): Llm => ({
  model,
  // oxlint-disable-next-line require-yield -- it has nothing to say
  async *stream() {
    throw error
  },
})

/** Leaves out the metrics of runs, which do not include titles. */
export const createTitleLlmFactory = (
  { models }: Pick<LlmFactoryParts, 'models'>,
  { id: conversationId, ...parts }: Pick<LlmFactoryParts, 'secrets' | 'redactor'> & { readonly id: string },
) => createLlmFactory({ models, conversationId, ...parts, recorder: { time: (llm) => llm } })
