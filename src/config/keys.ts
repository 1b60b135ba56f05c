/** Reads the keys of the server, and where and with which key other services are asked. */
import { z } from 'zod'
import { faultOfHeaderValue, hasUserInfo } from '../contract/values/http-header.ts'

import type { ReadVariable } from './environment.ts'
import { checkVariable, ConfigError } from './environment.ts'
import type { Name } from './variables.ts'

/** A shorter key can be guessed. */
const MIN_KEY_LENGTH = 16

export function readMasterKeys(value: string | undefined): [string, ...string[]] {
  const [first = '', ...others] = (value ?? '').split(',').map((key) => key.trim())
  const keys = [first, ...others]
  if (!value) {
    throw new ConfigError(
      'OPENHANDS_MASTER_KEY is not set. Make a key with `openssl rand -hex 32` and export it, or start with --generate-key to have one made and kept.',
    )
  }
  const fault = keys.map(faultOfMasterKey).find((each) => each !== undefined)
  if (fault !== undefined)
    throw new ConfigError(`OPENHANDS_MASTER_KEY ${fault}; make one with \`openssl rand -hex 32\`.`)
  return [first, ...others]
}

/** Returns a clause without a subject; undefined for a key that can be used. It quotes nothing of the key. */
export function faultOfMasterKey(key: string): string | undefined {
  if (key.length < MIN_KEY_LENGTH) return `must have at least ${MIN_KEY_LENGTH} characters`
  // A key with other characters cannot be sent in a header, so every request would be refused.
  return /^[\x21-\x7e]+$/.test(key) ? undefined : 'may contain visible ASCII characters only, and no spaces'
}

type Keys = readonly [string, ...string[]]

/**
 * Several, separated by commas, while the key changes. A key may contain commas itself, so the whole text is one, too.
 * Everything that a master key has encrypted stays readable.
 */
export function readSecretKeys(value: string | undefined, masterKeys: Keys): Keys {
  if (value === undefined) return masterKeys
  const [first, ...others] = value.split(',').flatMap((key) => key.trim() || [])
  if (first === undefined || others.length === 0) return [value, ...masterKeys]
  return [first, ...others, value, ...masterKeys]
}

/** The message never quotes it: it contains a password. */
export function readDatabaseUrl(
  name: 'OPENHANDS_DATABASE_URL' | 'OPENHANDS_DATABASE_SESSION_URL',
  read: ReadVariable,
): string | undefined {
  const url = read(name)
  if (url === undefined || (/^postgres(?:ql)?:\/\/[^\s/]+\/[^\s/]+$/.test(url) && isPercentEncoded(url))) return url
  throw new ConfigError(
    `${name} is not valid: give it as postgresql://user:password@host:5432/name, with special characters of the password percent-encoded.`,
  )
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** The key is sent in a header. */
export const readLlmKey = (key: string | undefined) => readHeaderKey('LLM_API_KEY', key)

/** The path that the server adds to the URL of a model endpoint. */
const ADDED_PATH = /\/(chat\/completions)\/*$/

/** The endpoint of the default model. Every request would fail with the URL of one route of it. */
export function readLlmUrl(read: ReadVariable): string | undefined {
  const url = readUrl('LLM_BASE_URL', read)
  const addedPath = url === undefined ? undefined : ADDED_PATH.exec(new URL(url).pathname)?.[1]
  if (addedPath === undefined) return url
  throw new ConfigError(`LLM_BASE_URL ends with /${addedPath}, which the server adds itself. Leave that part out.`)
}

function readUrl(name: 'LLM_BASE_URL' | 'TAVILY_BASE_URL', read: ReadVariable): string | undefined {
  const error = 'give a URL that begins with http:// or https://, such as https://api.example.com/v1'
  const url = checkVariable(name, z.url({ protocol: /^https?$/, error }).optional(), read)
  // They would not be sent, and every client would see the URL.
  if (url !== undefined && hasUserInfo(url))
    throw new ConfigError(
      `${name} contains a user name or password. Leave them out, and set ${name.replace('BASE_URL', 'API_KEY')}.`,
    )
  return url
}

/** Undefined without a key. */
export function readWebSearch(read: ReadVariable): { apiKey: string; baseUrl: string | undefined } | undefined {
  const apiKey = readHeaderKey('TAVILY_API_KEY', read('TAVILY_API_KEY'))
  const baseUrl = readUrl('TAVILY_BASE_URL', read)
  return apiKey === undefined ? undefined : { apiKey, baseUrl }
}

function readHeaderKey(name: Name, key: string | undefined): string | undefined {
  if (key === undefined || faultOfHeaderValue(key) === undefined) return key
  throw new ConfigError(`${name} holds a character that cannot be sent in an HTTP header.`)
}
