/** The secrets of one conversation while it is open: kept encrypted, hidden from all text, given to commands and to its model. */
import type { LlmConfig } from '../../contract/llm-config.ts'
import { MAX_SECRETS } from '../../contract/secret.ts'
import type { Secrets } from '../../contract/secret.ts'
import { Problem } from '../../contract/problem.ts'
import { gitCredentialEnv } from '../../security/git-credentials.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import type { SecretStore, SecretValues } from '../../security/secret-store.ts'
import type { LlmChange } from './llm-origin.ts'
import { boundTo, isFor } from './llm-origin.ts'
import { keptHeaders, mergeLlmSecrets } from './settings.ts'

/** Names only. */
export type SecretsChange = { readonly added: readonly string[]; readonly removed: readonly string[] }

/** Changes come one at a time, in the conversation's inbox, and are durable when they resolve. */
export interface ConversationSecrets {
  readonly names: () => string[]
  /** The model's credentials, as `settings.ts` keeps them: those for this origin, where there are any. */
  readonly llmFor: (origin: string) => Readonly<Record<string, string>>
  /** The variables of the next command, git's configuration among them. */
  readonly commandEnv: () => Record<string, string>
  /** From now on its credentials are found in text; for what comes in the same request as they do. */
  readonly hideLlm: (update: LlmConfig) => void
  /** Merges. Answers what has changed; throws a `Problem` when there would be too many. */
  readonly put: (secrets: Secrets) => Promise<SecretsChange>
  readonly remove: (name: string) => Promise<SecretsChange>
  /** Where the origin changes, what was kept for the former one is deleted. */
  readonly updateLlm: (change: LlmChange) => Promise<void>
}

/** What clients may do with them. Values go in, only names come out. */
export type SecretCommands = {
  readonly names: () => string[]
  /** Answers the names there are then. */
  readonly put: (secrets: Secrets) => Promise<string[]>
  readonly remove: (name: string) => Promise<void>
}

type Changes = { readonly changeSecrets: (store: () => Promise<SecretsChange>) => Promise<void> }

export function secretCommands({ changeSecrets }: Changes, secrets: ConversationSecrets): SecretCommands {
  return {
    names: secrets.names,
    async put(values) {
      await changeSecrets(() => secrets.put(values))
      return secrets.names()
    },
    remove: (name) => changeSecrets(() => secrets.remove(name)),
  }
}

export type ConversationSecretsDeps = {
  readonly redactor: Redactor
  readonly kept: SecretValues
  readonly write: (values: SecretValues) => ReturnType<SecretStore['write']>
}

export function createConversationSecrets({ redactor, kept, write }: ConversationSecretsDeps): ConversationSecrets {
  let env: Readonly<Record<string, string>> = kept['env'] ?? {}
  let llm: Readonly<Record<string, string>> = kept['llm'] ?? {}
  // Until the log tells of a change, the former configuration holds, and with it the former credentials.
  let formerLlm = llm
  const hidden = createHiddenValues(redactor)
  hidden.addAll(env)
  hidden.addLlm(llm)

  const store = async (next: { env?: typeof env; llm?: typeof llm }) => {
    await write({ llm, env, ...next })
    env = next.env ?? env
    llm = next.llm ?? llm
  }

  return {
    names: () => Object.keys(env).sort(),
    llmFor: (origin) => (!isFor(origin, llm) && isFor(origin, formerLlm) ? formerLlm : llm),
    commandEnv: () => ({ ...env, ...gitCredentialEnv(env) }),
    hideLlm: (update) => hidden.addLlm(mergeLlmSecrets(llm, update)),
    async put(secrets) {
      const next = { ...env, ...secrets }
      if (Object.keys(next).length > MAX_SECRETS) {
        throw new Problem('invalid_request', `A conversation has at most ${MAX_SECRETS} secrets; delete some first.`)
      }
      const added = Object.keys(secrets).filter((name) => secrets[name] !== env[name])
      if (added.length === 0) return { added, removed: [] }
      hidden.addAll(secrets)
      await store({ env: next })
      return { added: added.sort(), removed: [] }
    },
    async remove(name) {
      if (!Object.hasOwn(env, name)) return { added: [], removed: [] }
      const { [name]: _, ...rest } = env
      await store({ env: rest })
      return { added: [], removed: [name] }
    },
    async updateLlm({ update, origin, keepsCredentials }) {
      if (keepsCredentials && update.api_key === undefined && !update.extra_headers) return
      const merged = boundTo(origin, mergeLlmSecrets(keepsCredentials ? llm : {}, update))
      hidden.addLlm(merged)
      const before = llm
      await store({ llm: merged })
      formerLlm = before
    },
  }
}

/** Former values of one name that stay hidden. */
const MAX_FORMER_VALUES = 16

/**
 * What was hidden stays so until the conversation is closed, replaced or deleted meanwhile: processes that were started
 * with a value still have it, and may say it. It is in memory only: what is deleted is nowhere on disk.
 */
function createHiddenValues(redactor: Redactor) {
  const values = new Map<string, readonly string[]>()

  const add = (hide: Redactor['set'], name: string, ...added: readonly string[]) => {
    const all = [...new Set([...added, ...(values.get(name) ?? [])])].slice(0, MAX_FORMER_VALUES)
    values.set(name, all)
    hide(name, ...all)
  }

  return {
    addAll: (secrets: Readonly<Record<string, string>>) => {
      for (const [name, value] of Object.entries(secrets)) add(redactor.set, name, value)
    },
    // The agent's commands do not have these: what it may watch must not depend on them.
    addLlm: (llm: Readonly<Record<string, string>>) => {
      // Not by the name of the server's own key, which it must not take the place of.
      if (llm['api_key'] !== undefined) add(redactor.setServerKey, 'llm_config.api_key', llm['api_key'])
      for (const [name, value] of Object.entries(keptHeaders(llm))) {
        const parts = secretsInHeader(name, value)
        if (parts.length) add(redactor.setServerKey, `header ${name.replaceAll(/[^A-Za-z0-9-]/g, '_')}`, ...parts)
      }
    },
  }
}

/** These hold plain words, which would be missing from the agent's own work. Any other may be a credential. */
const PLAIN_HEADER =
  /^(accept|accept-.*|content-.*|user-agent|referer|http-referer|origin|x-title|x-openrouter-title|.*-version|.*-beta)$/i

/** What of a header is to be hidden. An echo may leave out the word before a credential. */
export function secretsInHeader(name: string, value: string): string[] {
  if (PLAIN_HEADER.test(name)) return []
  const credential = /^[A-Za-z-]+\s+(\S.*)$/.exec(value)?.[1]
  return credential === undefined ? [value] : [value, credential]
}
