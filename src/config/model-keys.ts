/** The key of the default model: given, printed by a command, or that of the vendor. And the environment without any key. */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import type { LlmConfig } from '../contract/values/llm-config.ts'
import { HostEnvironment } from '../lib/start-process.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { KeyCommand } from '../llm/key-command.ts'
import { hasKeyHeader, VendorKeys } from '../llm/endpoints/vendor-keys.ts'
import { VENDORS } from '../llm/endpoints/vendors.ts'
import type { ReadVariable } from './environment.ts'
import { ConfigError } from './environment.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A program and its arguments: there is no shell, and no directory that it is relative to. */
export const KeyCommandArgv = z
  .array(z.string(), { error: 'give a JSON array of texts, such as ["gcloud", "auth", "print-access-token"]' })
  .min(1, { error: 'name a program' })
  .refine(([program = '']) => program !== '' && (isAbsolute(program) || !program.includes('/')), {
    error: 'name the program by an absolute path, or by a name that is found in PATH',
  })

/** Undefined without one. Throws a `ConfigError`. */
export function readKeyCommand(read: ReadVariable): string[] | undefined {
  const text = read('LLM_API_KEY_COMMAND')
  if (text === undefined) return undefined
  const { data, error } = KeyCommandArgv.safeParse(parseJson(text))
  if (error) throw new ConfigError(`LLM_API_KEY_COMMAND is not valid: ${error.issues[0]?.message ?? 'unknown'}.`)
  if (read('LLM_API_KEY') !== undefined) throw new ConfigError('Set LLM_API_KEY or LLM_API_KEY_COMMAND, not both.')
  return data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** It has the environment of this process, except for keys: it finds its own settings there. */
export const createKeyCommand = (argv: readonly string[]): KeyCommand =>
  new KeyCommand(argv, HostEnvironment.ofPerson(withoutKeys(process.env)))

/** Returns the keys in the environment of this process. A `.env` is not read: it may belong to another project. */
export const ownVendorKeys = (): VendorKeys => new VendorKeys(process.env)

type Default = Pick<LlmConfig, 'model' | 'api_key' | 'base_url' | 'provider'>

/** The defaults with the key of the vendor, if no other key is given. */
export function withVendorKey(givenDefault: Default, keys: VendorKeys): Default & { readonly isVendorKey?: boolean } {
  const { model, api_key } = givenDefault
  if (model === undefined) return givenDefault
  const whole = keys.withOnlyVendor(givenDefault)
  const own = api_key === undefined ? keys.for(whole) : undefined
  return own ? { ...whole, api_key: own.key, isVendorKey: true } : whole
}

/** Fills in the key of the vendor. `name` is its variable. */
export function withOwnVendorKey(llm: LlmConfig, keys: VendorKeys): { llm: LlmConfig; name: string | undefined } {
  const whole = withoutUndefined(keys.withOnlyVendor(llm))
  const own = whole.api_key === undefined && !hasKeyHeader(whole) ? keys.for(whole) : undefined
  return own ? { llm: { ...whole, api_key: own.key }, name: own.variable } : { llm: whole, name: undefined }
}

/** What this server was given for itself, and every key of a vendor. Programs that a person has chosen get the rest. */
const OF_SERVER = /^(OPENHANDS|LLM|TAVILY)_/
const OF_VENDORS: ReadonlySet<string> = new Set(VENDORS.flatMap(({ keyVariables }) => keyVariables))

export const withoutKeys = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_SERVER.test(name) && !OF_VENDORS.has(name)))
