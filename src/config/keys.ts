/** Reads the keys of the server and of the default model. */
import { z } from 'zod'
import { faultOfHeaderValue } from '../contract/http-header.ts'

import type { Read } from './environment.ts'
import { checked, ConfigError } from './environment.ts'
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
  if (keys.some((key) => key.length < MIN_KEY_LENGTH)) {
    throw new ConfigError(
      `OPENHANDS_MASTER_KEY must have at least ${MIN_KEY_LENGTH} characters; make one with \`openssl rand -hex 32\`.`,
    )
  }
  // A key with other characters cannot be sent in a header, so every request would be refused.
  if (keys.some((key) => !/^[\x21-\x7e]+$/.test(key)))
    throw new ConfigError('OPENHANDS_MASTER_KEY may hold visible ASCII characters only.')
  return [first, ...others]
}

/** The key is sent in a header. */
export const readLlmKey = (key: string | undefined) => readHeaderKey('LLM_API_KEY', key)

/** Undefined without a key. */
export function readWebSearch(read: Read): { apiKey: string; baseUrl: string | undefined } | undefined {
  const apiKey = readHeaderKey('TAVILY_API_KEY', read('TAVILY_API_KEY'))
  const baseUrl = checked('TAVILY_BASE_URL', z.url({ protocol: /^https?$/ }).optional(), read)
  return apiKey === undefined ? undefined : { apiKey, baseUrl }
}

function readHeaderKey(name: Name, key: string | undefined): string | undefined {
  if (key === undefined || faultOfHeaderValue(key) === undefined) return key
  throw new ConfigError(`${name} holds a character that cannot be sent in an HTTP header.`)
}
