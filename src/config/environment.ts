/** Reads one setting at a time: from the command line, the environment, `.env`, or a secret file. */
import { parseEnv } from 'node:util'
import type { z } from 'zod'
import { nearestName } from '../contract/nearest-name.ts'
import { codeOf } from '../lib/error-code.ts'
import { readSmallFileSync, whyUnreadable } from '../files/small-file.ts'
import { readPipe, readSecretBytes } from './piped-secrets.ts'
import type { Name, Variable } from './variables.ts'
import { VARIABLES } from './variables.ts'

/** An invalid or missing setting: one sentence for the operator, no stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export const DOT_ENV = '.env'

export type ReadVariable = (name: Name) => string | undefined

/** Precedence: command line, environment, `.env`, default; an empty value counts as not set. */
export function createReader(overrides: Partial<Record<Name, string>>): ReadVariable {
  const nonEmptyEntries = Object.entries(process.env).filter(([, value]) => value)
  const env: Record<string, string | undefined> = { ...readDotEnv(), ...Object.fromEntries(nonEmptyEntries) }
  return (name) => {
    const variable: Variable = VARIABLES[name]
    if (variable.isExecuted && overrides[name] === undefined && env[name] !== (process.env[name] || undefined))
      throw new ConfigError(`${name} is not read from ${DOT_ENV}, because it starts a program. Export it instead.`)
    const direct = overrides[name] ?? env[name]
    const file = variable.secret ? env[`${name}_FILE`] : undefined
    if (direct && file && overrides[name] === undefined) throw new ConfigError(`Set ${name} or ${name}_FILE, not both.`)
    return direct || (file && readSecretFile(name, file)) || variable.default
  }
}

function readDotEnv(): Record<string, string | undefined> {
  try {
    return parseEnv(new TextDecoder().decode(readSmallFileSync(DOT_ENV)))
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return {}
    throw new ConfigError(`.env cannot be read (${whyUnreadable(cause)}).`, { cause })
  }
}

/** The source of the value of a setting: the environment, the file `.env`, or a secret file. */
export type SettingSource =
  | { readonly from: 'environment' | 'dotenv' }
  | { readonly from: 'file'; readonly path: string }

/** Undefined when it is not set, whatever its default is. */
export function sourceOf(name: Name): SettingSource | undefined {
  const dotEnv = readDotEnv()
  if (process.env[name]) return { from: 'environment' }
  if (dotEnv[name]) return { from: 'dotenv' }
  const { secret }: Variable = VARIABLES[name]
  const path = secret ? process.env[`${name}_FILE`] || dotEnv[`${name}_FILE`] : undefined
  return path ? { from: 'file', path } : undefined
}

/** Returns where the master key comes from; undefined if it is not set. A key that the server has generated does not count. */
export const masterKeySource = (): SettingSource | undefined => sourceOf('OPENHANDS_MASTER_KEY')

/** What the names of this server's own variables begin with; the others are shared with other programs. */
const PREFIX = 'OPENHANDS_'

/**
 * Returns the variables that begin like those of this server but are unknown: other programs' own, most likely. Throws
 * a `ConfigError` for one that is a letter or two from a variable: the server would run without a setting that was given.
 */
export function unknownVariables(): string[] {
  const variables: [string, Variable][] = Object.entries(VARIABLES)
  const knownNames = variables.flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]))
  const givenNames = Object.keys({ ...readDotEnv(), ...process.env })
  const unknownNames = givenNames.filter((name) => name.startsWith(PREFIX) && !knownNames.includes(name))
  for (const name of unknownNames) {
    const nearest = nearestName(name, knownNames)
    if (nearest !== undefined) throw new ConfigError(`there is no variable ${name}; did you mean ${nearest}?`)
  }
  return unknownNames.map((name) => {
    const meantName = meantBy(name, knownNames)
    return meantName === undefined ? name : `${name} (did you mean ${meantName}?)`
  })
}

/** The one variable with the same last word: other programs leave out or add a word, as in `OPENHANDS_PORT`. */
function meantBy(name: string, knownNames: readonly string[]): string | undefined {
  const ending = name.slice(name.lastIndexOf('_'))
  const [only, other] = knownNames.filter((candidate) => candidate.endsWith(ending))
  return other === undefined ? only : undefined
}

export const secretFilePaths = (): string[] => secretFiles().map(({ path }) => path)

function secretFiles(): { readonly name: string; readonly path: string }[] {
  const env = { ...readDotEnv(), ...process.env }
  const variables: [string, Variable][] = Object.entries(VARIABLES)
  return variables.flatMap(([name, { secret }]) => {
    const path = secret && env[`${name}_FILE`]
    return path ? [{ name, path }] : []
  })
}

function readSecretFile(name: Name, path: string): string {
  try {
    const secret = readSecretBytes(path).toString('utf8').trim()
    if (secret) return secret
  } catch (cause) {
    throw unreadable(name, path, cause)
  }
  throw new ConfigError(`${name}_FILE: ${path} is empty.`)
}

/**
 * Reads secrets from pipes, so that settings can be read later without blocking. `names`: only these variables. Throws a
 * `ConfigError`, or the reason of the signal.
 */
export async function readSecretPipes(names: readonly string[] | undefined, signal: AbortSignal): Promise<void> {
  for (const { name, path } of secretFiles()) {
    if (names && !names.includes(name)) continue
    await readPipe(path, signal).catch((cause: unknown) => {
      signal.throwIfAborted()
      throw unreadable(name, path, cause)
    })
  }
}

const unreadable = (name: string, path: string, cause: unknown): ConfigError =>
  new ConfigError(`${name}_FILE: ${path} cannot be read (${whyUnreadable(cause)}).`, { cause })

/** The message names the variable and never the value: it may be a secret in the wrong place. */
export function checkVariable<T>(name: Name, schema: z.ZodType<T>, read: ReadVariable): T {
  const parseResult = schema.safeParse(read(name))
  if (parseResult.success) return parseResult.data
  throw new ConfigError(`${name} is not valid: ${parseResult.error.issues.map((issue) => issue.message).join('; ')}.`)
}

/** The socket of the ssh agent of the person. */
export const sshAgentSocket = (): string | undefined => process.env.SSH_AUTH_SOCK || undefined

/** A variable of other programs that a person has set as well, such as `OPENAI_API_KEY`. */
export const personalVariable = (name: string): string | undefined => process.env[name] || undefined

/** Returns the name of the variable that names a proxy for requests to other hosts; undefined if none does. */
export const proxyVariable = (): string | undefined =>
  ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].find((name) => process.env[name])

/** The environment of this process with a `.env`, for the keys of vendors. */
export const environmentWithDotEnv = (): Readonly<Record<string, string | undefined>> => ({
  ...readDotEnv(),
  ...Object.fromEntries(Object.entries(process.env).filter(([, value]) => value)),
})

/** Returns the variables of the model. `serve` reads only those in `variables.ts`, the programs of a person all. */
export const modelVariables = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('LLM_')))
