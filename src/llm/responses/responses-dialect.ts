/**
 * The differences between endpoints of OpenAI's Responses API, and between their models: first guessed from the name of
 * the model, then learnt from refusals.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import { NO_IMAGES } from '../request/images.ts'
import type { LlmRequest } from '../llm.ts'
import { latestReasoning } from '../request/refused-reasoning.ts'
import { isOpenAiReasoningModel } from '../endpoints/models.ts'
import { vendorAt } from '../endpoints/vendors.ts'

export type ResponsesDialect = {
  /** If true, encrypted reasoning is requested. Models that do not reason refuse it. */
  readonly encrypted: boolean
  /** If true, a summary of the reasoning is requested. Organizations that are not verified do not get it. */
  readonly summary: boolean
  /** If true, the schema of the output is sent as the format of the text. */
  readonly schema: boolean
  /** If false, a sentence replaces each image. */
  readonly images: boolean
  /** The latest reasoning that was refused: it is left out, and all before it. */
  readonly refusedReasoning?: string | undefined
}

export function firstDialect({ baseUrl, model }: Endpoint): ResponsesDialect {
  const schema = vendorAt(baseUrl)?.id === 'openai'
  return { encrypted: true, summary: isOpenAiReasoningModel(model), schema, images: true }
}

export function dialectsAfterRefusal(
  dialect: ResponsesDialect,
  complaint: string,
  { messages }: LlmRequest,
): readonly ResponsesDialect[] {
  const others: ResponsesDialect[] = []
  // Reasoning stays in the history: unless it were left out, every later request would fail. Another organization
  // cannot decrypt it, for example.
  if (BAD_REASONING.test(complaint)) others.push({ ...dialect, refusedReasoning: latestReasoning(messages) })
  if (/summar/i.test(complaint)) others.push({ ...dialect, summary: false })
  if (/encrypted|\binclude\b/i.test(complaint)) others.push({ ...dialect, encrypted: false })
  if (dialect.schema && /schema|text\.format/i.test(complaint)) others.push({ ...dialect, schema: false })
  if (dialect.images && NO_IMAGES.test(complaint)) others.push({ ...dialect, images: false })
  return others
}

const BAD_REASONING =
  /encrypted content.{0,120}could not be|invalid_encrypted_content|reasoning.{0,120}without its required|item '?rs_|required reasoning item/i
