/** The input of a tool call: whether the tool accepts it, and what the call would do. */
import type { z } from 'zod'
import { ComplexJson, parseUntrustedJson } from '../lib/json/untrusted-json.ts'
import type { ToolAccess } from '../policy/tool-access.ts'
import type { Tool } from '../tools/tool.ts'

/** Enough for any sensible call, few enough that a hallucinated one does not flood the log. */
const MAX_ISSUES = 10

/**
 * Parses the input for the tool, or returns why it is invalid. The gate and the run share this result: a call that
 * needs no approval because it is invalid must not run.
 */
export function readInput(
  tool: Tool | undefined,
  input: unknown,
): { readonly accepted: unknown } | { readonly fault: string } {
  if (!tool) return { fault: 'There is no such tool.' }
  if (typeof input === 'string') {
    return { fault: `The arguments are not a JSON object: ${jsonFault(input)}. Send the call again with valid JSON.` }
  }
  const asSent = tool.input.safeParse(input)
  const sparse = asSent.success ? undefined : withoutNulls(input)
  const validation = sparse ? tool.input.safeParse(sparse) : asSent
  return validation.success
    ? { accepted: validation.data }
    : { fault: `The arguments do not fit ${tool.name}: ${tellIssues(validation.error)}` }
}

/** Returns the parameters that a call gives, as its tool receives them: what the tool ignores is not part of it. */
export function givenParameters(input: object, accepted: unknown): Readonly<Record<string, unknown>> {
  const parameters = typeof accepted === 'object' && accepted !== null ? Object.entries(accepted) : []
  return Object.fromEntries(parameters.filter(([name]) => Object.hasOwn(input, name)))
}

export function accessOf(tool: Tool | undefined, input: unknown): ToolAccess {
  if (!tool || tool.harmless) return { kind: 'none' }
  const toolInput = readInput(tool, input)
  if ('fault' in toolInput) return { kind: 'none' }
  return tool.access?.(toolInput.accepted) ?? { kind: 'other' }
}

/** Many models write `null` for an omitted argument. Returns undefined if the input has no `null`: checking takes time. */
function withoutNulls(input: unknown): object | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- text was refused before, and nothing else is stored for a call
  const entries = Object.entries(input as object)
  const givenEntries = entries.filter(([, value]) => value !== null)
  return givenEntries.length < entries.length ? Object.fromEntries(givenEntries) : undefined
}

function tellIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `${issue.path.length ? `${issue.path.join('.')}: ` : ''}${issue.message}`)
    .join('; ')
}

function jsonFault(text: string): string {
  try {
    const value = parseUntrustedJson(text)
    return `it is ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}`
  } catch (error) {
    if (error instanceof ComplexJson) return `it ${error.message}`
    return error instanceof Error ? error.message : String(error)
  }
}
