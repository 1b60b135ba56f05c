/** Reads one setting at a time: from the command line, the environment, `.env`, or a secret file. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { z } from 'zod'
import type { Name, Variable } from './variables.ts'
import { VARIABLES } from './variables.ts'

/** An invalid or missing setting: one sentence for the operator, no stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export const DOT_ENV = '.env'

export type Read = (name: Name) => string | undefined

/** Precedence: command line, environment, `.env`, default; an empty value counts as not set. */
export function createReader(overrides: Partial<Record<Name, string>>): Read {
  const given = Object.entries(process.env).filter(([, value]) => value)
  const env: Record<string, string | undefined> = { ...readDotEnv(), ...Object.fromEntries(given) }
  return (name) => {
    const variable: Variable = VARIABLES[name]
    const direct = overrides[name] ?? env[name]
    const file = variable.secret ? env[`${name}_FILE`] : undefined
    if (direct && file && overrides[name] === undefined) throw new ConfigError(`Set ${name} or ${name}_FILE, not both.`)
    return direct || (file && readSecretFile(name, file)) || variable.default
  }
}

function readDotEnv(): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(DOT_ENV, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code !== 'ENOENT') {
      throw new ConfigError(`.env cannot be read (${String(error.code)}).`, { cause: error })
    }
    return {}
  }
}

export function secretFilePaths(): string[] {
  const env = { ...readDotEnv(), ...process.env }
  const variables: [string, Variable][] = Object.entries(VARIABLES)
  return variables.flatMap(([name, { secret }]) => (secret && env[`${name}_FILE`]) || [])
}

function readSecretFile(name: Name, path: string): string {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    if (secret) return secret
  } catch (error) {
    throw new ConfigError(
      `${name}_FILE: ${path} cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : 'error'}).`,
      {
        cause: error,
      },
    )
  }
  throw new ConfigError(`${name}_FILE: ${path} is empty.`)
}

/** The message names the variable and never the value: it may be a secret in the wrong place. */
export function checked<T>(name: Name, schema: z.ZodType<T>, read: Read): T {
  const parsed = schema.safeParse(read(name))
  if (parsed.success) return parsed.data
  throw new ConfigError(`${name} is not valid: ${parsed.error.issues.map((issue) => issue.message).join('; ')}.`)
}
