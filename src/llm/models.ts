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

/**
 * Context windows in tokens, by family, as their vendors publish them. Where versions differ, the smallest: too small a
 * value compacts early, too large a one makes requests fail.
 */
const WINDOWS: readonly (readonly [RegExp, number])[] = [
  [/^gpt-4\.1/, 1_047_576],
  // Of the 400,000 tokens, 272,000 are for the input.
  [/^gpt-5/, 272_000],
  [/^(gpt-4o|gpt-4-turbo|chatgpt-4o|o1-mini|o1-preview)/, 128_000],
  [/^gpt-oss/, 131_072],
  [/^gpt-4/, 8192],
  [/^gpt-3\.5/, 16_385],
  [/^(o1|o3|o4)(-|$)/, 200_000],
  [/^claude/, 200_000],
  [/^gemini-(1\.5|[2-9])/, 1_048_576],
  [/^deepseek/, 128_000],
  [/^kimi-k2/, 131_072],
  [/^qwen3-coder/, 262_144],
  [/^glm-4\.[6-9]/, 200_000],
  [/^glm-4\.5/, 131_072],
  [/^minimax-m2/, 196_608],
  [/^grok-(4|code)/, 256_000],
  [/^(devstral|mistral-(large|medium))/, 131_072],
  [/^llama-?(3\.[1-3])/, 131_072],
]

/** Returns undefined for an unknown model. */
export function contextWindowOf(model: string): number | undefined {
  const name = baseName(model)
  for (const [family, tokens] of WINDOWS) if (family.test(name)) return tokens
  return undefined
}
