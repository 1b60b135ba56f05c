/** A tool within the limits of `tool_config`: ends a call in time, and shortens its output. */
import type { ToolLimits } from '../contract/limits/tool-config.ts'
import { withinTime } from '../lib/bounded-wait.ts'
import type { Tool, ToolContext } from './tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'

export type LimitedToolDeps = {
  /** The current limits; asked for at each call. */
  readonly limitsOf: (tool: string) => ToolLimits | undefined
  /** Redacts text before it is cut: a secret that is cut would not be found later. */
  readonly redact: (text: string) => Promise<string>
}

export function limitTool(tool: Tool, { limitsOf, redact }: LimitedToolDeps): Tool {
  return {
    ...tool,
    async run(input, context) {
      const limits = limitsOf(tool.name)
      if (!limits) return await tool.run(input, context)
      const { timeout_s, max_output_chars: most } = limits
      const running = timeout_s === undefined ? tool.run(input, context) : runInTime(tool, input, context, timeout_s)
      const outcome = await running
      return most === undefined ? outcome : await shortenOutcome(tool, outcome, most, redact)
    },
  }
}

async function runInTime(tool: Tool, givenInput: unknown, context: ToolContext, seconds: number): Promise<ToolOutcome> {
  const input = tool.withTimeout?.(givenInput, seconds) ?? givenInput
  if (tool.withTimeout) return await tool.run(input, context)
  let isLate = false
  const outcome = await withinTime(seconds * 1000, context.signal, async (signal) => {
    signal.addEventListener('abort', () => (isLate = !context.signal.aborted), { once: true })
    return await tool.run(input, { ...context, signal })
  })
  if (!isLate || outcome.error?.type !== 'interrupted') return outcome
  const message = `The call was ended after ${seconds} s, as tool_config of the conversation says.`
  return {
    ...outcome,
    error: { type: 'timeout', message },
    ...(typeof outcome.output === 'string' && { output: message }),
  }
}

async function shortenOutcome(
  tool: Tool,
  outcome: ToolOutcome,
  most: number,
  redact: LimitedToolDeps['redact'],
): Promise<ToolOutcome> {
  let isCut = false
  const cutText = async (text: string) => {
    if (text.length <= most) return text
    isCut = true
    return cutMiddle(await redact(text), most)
  }
  const output = await (tool.cutOutput?.(outcome.output, cutText) ?? cutAny(outcome.output, cutText))
  return isCut ? { ...outcome, output, truncated: true } : outcome
}

type CutText = (text: string) => Promise<string>

/** Text, or the text parts of a list; images stay. */
async function cutAny(output: unknown, cutText: CutText): Promise<unknown> {
  if (typeof output === 'string') return await cutText(output)
  if (!Array.isArray(output)) return output
  return await Promise.all(output.map((part: unknown) => (isText(part) ? cutPart(part, cutText) : part)))
}

const isText = (part: unknown): part is { readonly type: 'text'; readonly text: string } =>
  typeof part === 'object' && part !== null && 'text' in part && typeof part.text === 'string'

const cutPart = async (part: { readonly text: string }, cutText: CutText) => ({
  ...part,
  text: await cutText(part.text),
})

/** The end often says how it went: an error, a summary, that text is untrusted. */
function cutMiddle(text: string, most: number): string {
  const tail = Math.floor(most / 3)
  const [head, end] = [text.slice(0, most - tail).toWellFormed(), text.slice(text.length - tail).toWellFormed()]
  return `${head}\n[… ${text.length - most} characters are left out: see tool_config …]\n${end}`
}
