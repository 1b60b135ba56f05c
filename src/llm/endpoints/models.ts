/** What is known about models by their name alone: hints that no endpoint reports in advance, never a requirement. */

/**
 * Families that predate function calling, or were made without it. Only a reason to warn: an endpoint may still support
 * tool calls for such a model, and an unknown model is assumed to support them.
 */
const WITHOUT_TOOLS = [
  /^(text-)?(davinci|curie|babbage|ada)\b/,
  /^gpt-3\.5-turbo-instruct/,
  /^(o1-mini|o1-preview|chatgpt-4o-latest)\b/,
  /^(llama-?2|codellama|vicuna|alpaca|falcon|mpt|starcoder|phi-?[123]|gemma-?2)\b/,
]

export function seemsToLackTools(model: string): boolean {
  const name = baseName(model)
  return WITHOUT_TOOLS.some((family) => family.test(name))
}

/** OpenAI's own reasoning models refuse `max_tokens`; the family names are OpenAI's, on any host. */
export function isOpenAiReasoningModel(model: string): boolean {
  return /^(o[1-9]|gpt-([5-9]|[1-9]\d))(?![\db])/.test(baseName(model))
}

/**
 * Models that lose their context, or whose endpoint answers 400, unless their reasoning is sent back with the tool
 * calls it led to (DeepSeek since V3.2, Kimi K2 Thinking, MiniMax M2). Others refuse the field, so it is sent to these
 * only.
 */
export function wantsReasoningBack(model: string): boolean {
  return /deepseek|kimi|minimax-m/.test(baseName(model))
}

/** Mistral's models, whose API and chat templates refuse a user's message after a tool's. */
export function hasAlternatingRoles(model: string): boolean {
  return /mistral|mixtral|codestral|devstral|magistral|ministral|pixtral/.test(baseName(model))
}

/** `provider/vendor/Model-Name` -> `model-name` */
function baseName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1).toLowerCase()
}
