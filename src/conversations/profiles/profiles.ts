/**
 * Profiles: named parts of create requests that an administrator has stored, encrypted, because they contain secrets. What a
 * key may use of them is decided in `http/guards/limited-requests.ts`.
 */
import { z } from 'zod'
import { KeptCredentials } from '../../access/kept-credentials.ts'
import type { CreateConversation } from '../../contract/conversation.ts'
import { maskHooks } from '../../contract/hooks/hooks.ts'
import { DEFAULT_ITERATIONS } from '../../contract/limits/run-limits.ts'
import { Problem } from '../../contract/problem.ts'
import type { Profile, ProfileList } from '../../contract/profile.ts'
import { PutProfile } from '../../contract/profile.ts'
import { LlmConfig, maskLlmConfig, MASK } from '../../contract/values/llm-config.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { readMcp } from '../../mcp/read-config.ts'
import { shownMcp } from '../../state/view.ts'
import type { KeyMaterial, Sealer } from '../../security/sealer.ts'
import { createSealers } from '../../security/sealer.ts'
import type { CredentialTable, StoredCredential } from '../../storage/storage.ts'
import { parseLlmUpdate, rulesIn } from '../config/settings.ts'
import { resolveToolNames } from '../../tools/registry.ts'

const MAX_PROFILES = 200

/** The profile that there is without any other: the settings of the server. */
const DEFAULT = 'default'
const BUILT_IN: PutProfile = { description: 'The settings of the server.' }

const StoredProfile = z.object({ created_at: z.string(), updated_at: z.string(), sealed: z.string() })
type StoredProfile = z.infer<typeof StoredProfile>

type ProfilesDeps = {
  readonly table: CredentialTable
  readonly keys: KeyMaterial
  readonly now?: () => number
}

/** Whether the client may see the profile of this name. */
export type SeesProfile = (name: string) => boolean

export class Profiles {
  readonly #stored: KeptCredentials<StoredProfile>
  readonly #sealerOf: (owner: string) => Sealer
  readonly #now: () => number
  #isRead: Promise<void> | undefined

  /** Reads nothing before the first use. */
  constructor({ table, keys, now = Date.now }: ProfilesDeps) {
    this.#stored = new KeptCredentials({ table, now, parse: parseProfile, onChange: () => {} })
    this.#sealerOf = createSealers(keys)
    this.#now = now
  }

  async list(sees: SeesProfile): Promise<ProfileList> {
    await this.#upToDate()
    const visibleProfiles = [...this.#stored.all].filter(([name]) => sees(name))
    const items = visibleProfiles.map(([name, { created_at, updated_at, sealed }]) => {
      const { description } = this.#open(name, sealed)
      return { name, ...withoutUndefined({ description }), created_at, updated_at }
    })
    const isAlone = this.#stored.all.size === 0 && sees(DEFAULT)
    return { items: isAlone ? [{ name: DEFAULT, ...BUILT_IN }] : items }
  }

  /** Opens none of them. */
  async names(sees: SeesProfile): Promise<readonly Pick<Profile, 'name' | 'created_at'>[]> {
    await this.#upToDate()
    const { all } = this.#stored
    if (all.size === 0 && sees(DEFAULT)) return [{ name: DEFAULT }]
    return [...all].filter(([name]) => sees(name)).map(([name, { created_at }]) => ({ name, created_at }))
  }

  /** Returns the profile with masked secrets. Throws `profile_not_found`. */
  async get(name: string): Promise<Profile> {
    const { llm_config: llm, mcp, hooks, secrets, ...fields } = await this.#find(name)
    const { created_at, updated_at } = this.#stored.all.get(name) ?? {}
    const parseResult = llm && LlmConfig.safeParse(llm)
    return {
      name,
      ...fields,
      ...(parseResult?.success && { llm_config: maskLlmConfig(parseResult.data) }),
      ...(mcp && { mcp: shownMcp(readMcp(mcp).servers) }),
      ...(hooks && { hooks: maskHooks(hooks) }),
      ...(secrets && { secrets: Object.fromEntries(Object.keys(secrets).map((key) => [key, MASK])) }),
      ...withoutUndefined({ created_at, updated_at }),
    }
  }

  /** Returns true if it is new. Throws a `Problem` for what no conversation could be created with. */
  async put(name: string, profile: PutProfile): Promise<boolean> {
    const checkedProfile = checkProfile(profile)
    await this.#upToDate()
    return await this.#stored.change(async () => {
      const former = this.#stored.all.get(name)
      if (!former && this.#stored.all.size >= MAX_PROFILES)
        throw new Problem('limit_reached', `There are already ${MAX_PROFILES} profiles. Delete unused ones.`)
      const updated_at = new Date(this.#now()).toISOString()
      const sealedText = this.#sealerOf(ownerOf(name))
        .seal(Buffer.from(JSON.stringify(checkedProfile)))
        .toString('base64')
      await this.#stored.store(name, () => ({
        created_at: former?.created_at ?? updated_at,
        updated_at,
        sealed: sealedText,
      }))
      return former === undefined
    })
  }

  /** Conversations that were made from it are not changed. Throws `profile_not_found`. */
  async delete(name: string): Promise<void> {
    await this.#upToDate()
    await this.#stored.change(() =>
      this.#stored.store(name, () => {
        if (!this.#stored.all.has(name)) throw missing(name)
        return undefined
      }),
    )
  }

  /** Returns the request with the fields of its profile. Throws `profile_not_found`. */
  async applyTo(request: CreateConversation): Promise<CreateConversation> {
    if (request.profile === undefined) return request
    const { description: _, ...fields } = await this.#find(request.profile)
    return { max_iteration_per_run: DEFAULT_ITERATIONS, ...fields, ...withoutUndefined(request) }
  }

  /** Another instance may have changed one. */
  async #upToDate(): Promise<void> {
    if (this.#isRead) return await this.#isRead.then(() => this.#stored.follow())
    this.#isRead = this.#stored.read()
    await this.#isRead.catch((error: unknown) => {
      this.#isRead = undefined
      throw error
    })
  }

  async #find(name: string): Promise<PutProfile> {
    await this.#upToDate()
    const storedProfile = this.#stored.all.get(name)
    if (storedProfile) return this.#open(name, storedProfile.sealed)
    if (name === DEFAULT && this.#stored.all.size === 0) return BUILT_IN
    throw missing(name)
  }

  #open(name: string, sealedText: string): PutProfile {
    const text = this.#sealerOf(ownerOf(name)).unseal(Buffer.from(sealedText, 'base64'))?.toString()
    if (text !== undefined) return PutProfile.parse(JSON.parse(text))
    throw new Problem(
      'storage_failed',
      `The profile ${name} was encrypted with another key; start the server with it (OPENHANDS_SECRET_KEY, or the old master key after a comma), or store the profile again.`,
    )
  }
}

/** Names the owner so that the rows of two profiles cannot be swapped. */
const ownerOf = (name: string) => `profile ${name}`

const missing = (name: string) =>
  new Problem('profile_not_found', `There is no profile ${name}. GET /profiles lists those that there are.`)

/** A damaged row is ignored, and can be stored again. */
const parseProfile = ({ value }: StoredCredential): StoredProfile | undefined => StoredProfile.safeParse(value).data

const NO_MASK =
  'The profile holds a masked secret. Send the secret itself, or leave it out: a profile is replaced as a whole.'

/** What depends on the server or on a workdir is checked when a conversation is created. */
function checkProfile(profile: PutProfile): PutProfile {
  if (JSON.stringify([profile.llm_config, profile.secrets, profile.hooks, profile.mcp]).includes(JSON.stringify(MASK)))
    throw new Problem('invalid_request', NO_MASK)
  const llm = profile.llm_config && parseLlmUpdate(profile.llm_config).config
  resolveToolNames(profile.tools ?? [])
  rulesIn(profile, (text) => text)
  if (profile.mcp) readMcp(profile.mcp)
  return { ...profile, ...(llm && { llm_config: llm }) }
}
