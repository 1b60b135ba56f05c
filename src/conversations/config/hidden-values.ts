/**
 * Knows which values of a conversation are redacted: those of its secrets, and of the credentials that the server uses
 * for it.
 */
import { createHash } from 'node:crypto'
import { HookCredentials } from '../../hooks/http-hook.ts'
import { secretsInHeader } from '../../security/secrets-in-header.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import { keptHeaders } from './settings.ts'

type Values = Readonly<Record<string, string>>

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Former values of one name that stay redacted. */
const MAX_FORMER_VALUES = 16

/**
 * Values that have been redacted stay redacted until the conversation is closed, even if replaced or deleted: processes
 * that were started with a value still have it and may print it. They are kept in memory only: a deleted value is not
 * on disk.
 */
export class HiddenValues {
  readonly #redactor: Redactor
  readonly #values = new Map<string, readonly string[]>()

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  addAll(secrets: Values): void {
    for (const [name, value] of Object.entries(secrets)) this.#add(this.#redactor.set, name, value)
  }

  // The agent's commands do not receive these values: what an agent can observe must not depend on them.
  addLlm(llm: Values): void {
    const hide = this.#redactor.setServerKey
    // Do not key these by the name of the server's own key, which they must not replace.
    if (llm['api_key'] !== undefined) this.#add(hide, 'llm_config.api_key', llm['api_key'])
    for (const [name, value] of Object.entries(keptHeaders(llm))) {
      const parts = secretsInHeader(name, value)
      if (parts.length) this.#add(hide, `header ${name.replaceAll(/[^A-Za-z0-9-]/g, '_')}`, ...parts)
    }
  }

  addHooks(hooks: Values): void {
    for (const [url, credentials] of Object.entries(hooks)) {
      const { secret, headers = {} } = HookCredentials.parse(JSON.parse(credentials))
      const parts = Object.entries(headers).flatMap(([name, value]) => secretsInHeader(name, value))
      const all = [...(secret === undefined ? [] : [secret]), ...parts]
      const name = `hook ${shortHash(url)}`
      if (all.length > 0) this.#add(this.#redactor.setServerKey, name, ...all)
    }
  }

  // These are not for the commands of the agent either. A server may echo them.
  addMcp(credentials: Values): void {
    Object.entries(credentials).forEach(([place, value]) => {
      const [, field, name = ''] = place.split(' ')
      const parts = field === 'headers' ? secretsInHeader(name, value) : [value]
      if (parts.length) this.#add(this.#redactor.setServerKey, `mcp credential ${shortHash(place)}`, ...parts)
    })
  }

  addOauth(server: string, values: readonly string[]): void {
    if (values.length > 0) this.#add(this.#redactor.setServerKey, `mcp authorization ${server}`, ...values)
  }

  #add(hide: Redactor['set'], name: string, ...addedValues: readonly string[]): void {
    const all = [...new Set([...addedValues, ...(this.#values.get(name) ?? [])])].slice(0, MAX_FORMER_VALUES)
    this.#values.set(name, all)
    hide(name, ...all)
  }
}
