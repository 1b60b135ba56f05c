/** User messages and model usage: the content of messages and the cost of answers. */
import { z } from 'zod'

/**
 * Providers refuse a part of white space only, and lone surrogates (halves of characters), and with them every
 * later request of the conversation.
 */
const NonEmptyText = z
  .string()
  .regex(/\S/, 'a message must contain text')
  .overwrite((text) => text.toWellFormed())

const TextPart = z.object({ type: z.literal('text'), text: NonEmptyText }).meta({ id: 'TextPart' })
export type TextPart = z.infer<typeof TextPart>

export const ImagePart = z
  .object({
    type: z.literal('image'),
    media_type: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
    data: z.base64().describe('The image in base64.'),
  })
  .meta({ id: 'ImagePart' })

/** The APIs whose reasoning has to be sent back, unchanged, with the answer that it led to. */
export const ProviderData = z
  .object({
    provider: z
      .enum(['anthropic', 'openai_responses', 'openai'])
      .describe('The API that it came from. No other one gets it.'),
    kind: z
      .enum(['signature', 'encrypted', 'tool_call', 'reasoning_details'])
      .describe(
        'A signature of the text, the reasoning itself, encrypted, JSON that belongs to the next tool call, or JSON about all of the reasoning.',
      ),
    data: z.string(),
    id: z.string().optional(),
  })
  .meta({ id: 'ProviderData', description: 'Opaque data of the provider, sent back with this reasoning unchanged.' })
export type ProviderData = z.infer<typeof ProviderData>

const ReasoningPart = z
  .object({
    type: z.literal('reasoning'),
    text: z.string().describe('Empty if the provider sends its reasoning in encrypted form only.'),
    calls_before: z.int().positive().optional().describe('Number of tool calls of the answer before this part.'),
    provider_data: ProviderData.optional(),
  })
  .meta({ id: 'ReasoningPart' })

export const UserPart = z.discriminatedUnion('type', [TextPart, ImagePart]).meta({ id: 'UserPart' })
export type UserPart = z.infer<typeof UserPart>
export type ImagePart = z.infer<typeof ImagePart>

export const Phase = z
  .enum(['commentary', 'final_answer'])
  .describe('What the text is for, as the provider said; it is sent back with the text.')
export type Phase = z.infer<typeof Phase>

const AssistantTextPart = TextPart.extend({ phase: Phase.optional() }).meta({ id: 'AssistantTextPart' })

export const AssistantPart = z
  .discriminatedUnion('type', [AssistantTextPart, ReasoningPart])
  .meta({ id: 'AssistantPart' })
export type AssistantPart = z.infer<typeof AssistantPart>

/** True for a part whose provider wants it back as it is, and not only its text. */
export function isToReturn(part: AssistantPart): boolean {
  return part.type === 'reasoning' ? part.provider_data !== undefined : part.phase !== undefined
}

/** Returns the reasoning as it was sent live: between two parts of it there is an empty line. */
export const joinReasoning = (content: readonly AssistantPart[]): string =>
  content.flatMap((part) => (part.type === 'reasoning' && part.text !== '' ? [part.text] : [])).join('\n\n')

const MAX_PARTS = 1000

// Named, so that generated clients have a type for each of the two.
const MessageText = NonEmptyText.meta({ id: 'MessageText', description: 'A text.' })
const MessageParts = z
  .array(UserPart)
  .min(1, 'a message must have at least one part')
  .max(MAX_PARTS)
  .meta({ id: 'MessageParts', description: 'Text and images, in order.' })

/** A message as a client posts it. A string is one text part. */
export const UserInput = z
  .strictObject({
    role: z.literal('user'),
    content: z.union([MessageText, MessageParts]).describe('A text, or a list of parts.'),
    sender: z.string().max(200).optional().describe('Name of the sender, if several people share a conversation.'),
  })
  .meta({ id: 'UserInput' })
export type UserInput = z.infer<typeof UserInput>

/** A message in a request: a text stands for a message with this text. */
export const MessageInput = z.union([UserInput, MessageText]).meta({ id: 'MessageInput' })
export type MessageInput = z.infer<typeof MessageInput>

export function messageOf(input: MessageInput): UserInput {
  return typeof input === 'string' ? { role: 'user', content: input } : input
}

export function partsOf(content: UserInput['content']): UserPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

const tokens = z.int().nonnegative()

/** Tokens of one answer, or of a run. */
export const Usage = z
  .object({
    input_tokens: tokens.describe('All tokens of the request, cached or not.'),
    output_tokens: tokens,
    cached_tokens: tokens.describe('Input tokens that were read from the prompt cache of the provider.'),
    cache_write_tokens: tokens
      .optional()
      .describe('Input tokens that were written to the prompt cache. Absent if the provider does not report them.'),
    reasoning_tokens: tokens.describe('Output tokens that were spent on reasoning.'),
  })
  .meta({ id: 'Usage' })
export type Usage = z.infer<typeof Usage>

export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 }

/** Maximum tokens counted per answer: thousands of times what models can produce. Providers may send any number. */
export const MAX_TOKENS = 1e12

/** No sum exceeds the safe integers, whatever an older log contains. */
export function addUsage(a: Usage, b: Usage): Usage {
  const add = (name: keyof Usage) => {
    const loggedTokens = Math.min(Math.max(b[name] ?? 0, 0), MAX_TOKENS)
    return Math.min((a[name] ?? 0) + loggedTokens, Number.MAX_SAFE_INTEGER)
  }
  const cacheWrites = add('cache_write_tokens')
  return {
    input_tokens: add('input_tokens'),
    output_tokens: add('output_tokens'),
    cached_tokens: add('cached_tokens'),
    ...(cacheWrites > 0 && { cache_write_tokens: cacheWrites }),
    reasoning_tokens: add('reasoning_tokens'),
  }
}

/** USD. Keeps the cost a finite number whatever the prices are: JSON has no infinity. */
export const MAX_COST_USD = 1e12

/** Returns undefined if neither has a price. */
export function addCost(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : Math.min((a ?? 0) + (b ?? 0), MAX_COST_USD)
}

/** Usage by model name. */
export const UsageByModel = z.record(z.string(), Usage).meta({ id: 'UsageByModel' })
export type UsageByModel = z.infer<typeof UsageByModel>

/** Returns the input and output tokens of all models. */
export function tokensIn(usage: UsageByModel = {}): number {
  return Object.values(usage).reduce((sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens, 0)
}

export function countUsage(total: UsageByModel, model: string, usage: Usage): UsageByModel {
  return { ...total, [model]: addUsage(total[model] ?? NO_USAGE, usage) }
}
