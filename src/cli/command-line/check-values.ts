/** Checks the values of options. The messages never contain a key. */
import { isOptionName, optionNamed } from './options.ts'
import { UsageError } from './usage-error.ts'

const MAX_PORT = 65_535

type GivenValues = { readonly [name: string]: string | boolean | string[] | undefined; readonly port?: string }

/** Throws a `UsageError`. The names are those of options. */
export function checkValues(values: GivenValues): void {
  const { port } = values
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= MAX_PORT))
    throw new UsageError(`--port ${port} is not a port; give a number from 0 to ${MAX_PORT}.`)
  for (const [name, value] of Object.entries(values)) {
    const choices = isOptionName(name) ? optionNamed(name).choices : undefined
    if (choices && typeof value === 'string' && !choices.includes(value))
      throw new UsageError(`--${name} ${value} does not exist; use ${choicesIn(choices)}.`)
  }
  checkNumber('max-steps', values['max-steps'], 100_000)
  checkNumber('limit', values['limit'], 1_000_000)
}

const choicesIn = (choices: readonly string[]) => [choices.slice(0, -1).join(', '), ...choices.slice(-1)].join(' or ')

function checkNumber(name: string, value: GivenValues[string], most: number): void {
  if (value === undefined || (/^\d{1,7}$/.test(String(value)) && Number(value) >= 1 && Number(value) <= most)) return
  throw new UsageError(`--${name} ${String(value)} is not a number from 1 to ${most}.`)
}
