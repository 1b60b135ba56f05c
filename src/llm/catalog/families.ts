/**
 * Context windows of families whose names have countless variants, for models that no catalogue has. Where versions
 * differ, the smallest: too small a value compacts early, too large a one makes requests fail.
 */
const WINDOWS: readonly (readonly [RegExp, number])[] = [
  [/^gpt-4\.1/, 1_047_576],
  // The input takes 272,000 of the 400,000 tokens.
  [/^gpt-([5-9]|[1-9]\d)(?![\db])/, 272_000],
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
  [/^glm-(4\.[6-9]|[5-9])/, 200_000],
  [/^glm-4\.5/, 131_072],
  [/^minimax-m2/, 196_608],
  [/^grok-(4|code)/, 256_000],
  [/^(devstral|mistral-(large|medium))/, 131_072],
  [/^llama-?(3\.[1-3])/, 131_072],
]

/** Returns undefined for an unknown family. */
export function windowOfFamily(name: string): number | undefined {
  const lower = name.toLowerCase()
  return WINDOWS.find(([family]) => family.test(lower))?.[1]
}
