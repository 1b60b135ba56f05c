/** Interprets a vendor's finish reason for an answer that the model did not end itself. */

export type CutReason = 'output_limit' | 'content_filter' | 'context_window'

/** The names that OpenAI, Azure, Anthropic, Bedrock, Gemini, Mistral and Z.ai use, also behind gateways. */
const REASONS: Readonly<Record<CutReason, RegExp>> = {
  output_limit: /^(length|max_tokens|max_output_tokens|model_length|incomplete)$/i,
  content_filter:
    /^(content_?filter(ed)?|refusal|safety|recitation|prohibited_content|blocklist|spii|guardrail_intervened|sensitive)$/i,
  context_window: /^model_context_window_exceeded$/i,
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const CUT_REASONS = Object.keys(REASONS) as CutReason[]

/** Returns undefined for an answer that the model ended itself. */
export function cutReasonOf(finishReason: string): CutReason | undefined {
  for (const reason of CUT_REASONS) if (REASONS[reason].test(finishReason)) return reason
  return undefined
}
