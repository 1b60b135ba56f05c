/** Loads the logins when the first browser needs them: most servers never see one. */
import type { ApiKeys } from '../access/api-keys.ts'
import type { Logins } from '../access/logins.ts'
import type { LoginSupport } from '../http/guards/find-login.ts'
import { lazily } from '../lib/lazily.ts'
import type { HashBody } from '../security/body-hash.ts'
import type { Storage } from '../storage/storage.ts'

type LoginParts = {
  readonly storage: Pick<Storage, 'logins' | 'tickets'>
  readonly apiKeys: ApiKeys
  readonly masterKeys: readonly string[]
  /** Keyed with the keys of the data directory. */
  readonly hashBody: HashBody
  readonly isShared: boolean
  readonly isInsecureAllowed: boolean
}

const COOKIE_ID_CHARS = 12

/** Disposing ends what was loaded. */
export function createLoginSupport(parts: LoginParts): LoginSupport & AsyncDisposable {
  const { storage, hashBody, masterKeys, isInsecureAllowed } = parts
  const hashes = (key: string) => hashBody('login', key)
  let opening: Promise<Logins> | undefined
  const open = async () => {
    const loadedModule = await import('../access/logins.ts')
    const masterHashes = masterKeys.map(hashes).flatMap(({ bodyHash, formerHashes }) => [bodyHash, ...formerHashes])
    const hashMaster = (key: string) => hashes(key).bodyHash
    const tables = { table: storage.logins, codeTable: storage.tickets }
    return await loadedModule.Logins.open({ ...parts, ...tables, masterHashes, hashMaster })
  }
  return {
    isInsecureAllowed,
    cookieId: lazily(() => hashBody('login cookie', '').bodyHash.slice(0, COOKIE_ID_CHARS)),
    // The next request tries again after a failure, such as of the disk.
    open: () =>
      (opening ??= open().catch((error: unknown) => {
        opening = undefined
        throw error
      })),
    async [Symbol.asyncDispose]() {
      await (await opening?.catch(() => undefined))?.[Symbol.asyncDispose]()
    },
  }
}
