/**
 * Validates the final answer of a run against the JSON Schema of a client. The only file that knows the validator.
 *
 * The schema comes from a client, and its patterns and references can take forever: compiling and validating are ended
 * after a time limit, also inside a regular expression. A reference to another document is refused, not fetched.
 */
import vm from 'node:vm'
import type { ValidateFunction } from 'ajv'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

export type OutputSchema = Readonly<Record<string, unknown>>

export type Validation = { readonly value: unknown } | { readonly fault: string }

/** CPU time in milliseconds. Ordinary schemas take 50 the first time; the event loop is blocked for so long at most. */
const TIME_LIMIT_MS = 400

/** On a busy machine, most of the time passes without work: then it is tried again with twice the time. */
const MAX_TRIES = 4

const MAX_FAULT_CHARS = 1000

/** Returns what is wrong with a schema, as a clause; undefined if answers can be validated with it. */
export async function faultOfSchema(schema: OutputSchema): Promise<string | undefined> {
  const compiled = await compile(schema)
  return 'fault' in compiled ? compiled.fault : undefined
}

/** Parses the text as JSON and validates it. Never throws: a schema that cannot be used is a fault as well. */
export async function validateOutput(schema: OutputSchema, text: string): Promise<Validation> {
  const parsed = parse(text)
  if ('fault' in parsed) return parsed
  const compiled = await compile(schema)
  if ('fault' in compiled) return { fault: `the schema ${compiled.fault}` }
  const { validate } = compiled
  const checked = withinTime(() => validate(parsed.value))
  if ('fault' in checked) return { fault: `checking it ${checked.fault}` }
  return checked.value ? parsed : { fault: tellErrors(validate) }
}

async function compile(
  schema: OutputSchema,
): Promise<{ readonly validate: ValidateFunction } | { readonly fault: string }> {
  // Loaded with the first schema: most servers never need it.
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  // The schema of the schema itself is not needed, and other drafts would be refused.
  const { $schema: _, ...rest } = schema
  const compiled = withinTime(() => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, logger: false })
    return ajv.compile(rest)
  })
  return 'fault' in compiled ? compiled : { validate: compiled.value }
}

const call = new vm.Script('work()')

type Worked<T> = { readonly value: T } | { readonly fault: string }

/** `vm` ends the work of this thread after the time limit, whatever code it is in. */
function withinTime<T>(work: () => T): Worked<T> {
  const before = cpuMs()
  for (let tries = 0; ; tries++) {
    try {
      const timeout = TIME_LIMIT_MS * 2 ** tries
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the result of `work`
      return { value: call.runInContext(vm.createContext({ work }), { timeout }) as T }
    } catch (error) {
      if (error instanceof RangeError) return { fault: 'is nested too deeply' }
      if (error instanceof Error) return { fault: `is not usable: ${error.message.slice(0, MAX_FAULT_CHARS)}` }
      // The error of the time limit belongs to the other context, and is not an instance of our class.
      if (cpuMs() - before > TIME_LIMIT_MS / 2 || tries === MAX_TRIES) return { fault: 'takes too long' }
    }
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function parse(text: string): Validation {
  try {
    return { value: parseUntrustedJson(withoutCodeBlock(text)) }
  } catch (error) {
    if (error instanceof ComplexJson) return { fault: `it ${error.message}` }
    return { fault: `it is not JSON: ${error instanceof Error ? error.message.slice(0, MAX_FAULT_CHARS) : ''}` }
  }
}

/** Models like to put JSON into a code block. No pattern: a long run of spaces would take quadratic time. */
function withoutCodeBlock(text: string): string {
  const block = text.trim()
  const firstLine = block.slice(0, block.indexOf('\n') + 1).trim()
  const isBlock = /^```(json)?$/i.test(firstLine) && block.endsWith('```')
  return isBlock ? block.slice(block.indexOf('\n') + 1, -3) : text
}

function tellErrors({ errors }: ValidateFunction): string {
  const all = (errors ?? []).slice(0, 5).map(({ instancePath, message }) => `${instancePath || 'the value'} ${message}`)
  return all.join('; ').slice(0, MAX_FAULT_CHARS)
}
