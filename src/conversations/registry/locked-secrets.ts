/** Whether something at rest was encrypted with a key that the server does not have now. Only asked when a key is missing. */
import { Problem } from '../../contract/problem.ts'
import type { Storage } from '../../storage/storage.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { CallbackFile } from '../../webhooks/callback-record.ts'

type LockedSecretsDeps = { readonly storage: Storage; readonly logger: Logger }

const SECRETS_WITHOUT_KEY =
  'some stored secrets were encrypted with another key and cannot be decrypted; they are kept: start once with the old key too, as OPENHANDS_MASTER_KEY=new,old or OPENHANDS_SECRET_KEY=new,old'

/** A key that encrypted nothing is not missed. Runs while the first requests are served: there may be many conversations. */
export async function warnOfLockedSecrets({ storage, logger }: LockedSecretsDeps): Promise<void> {
  try {
    if (await hasLockedSecrets(storage)) logger.warn(SECRETS_WITHOUT_KEY)
  } catch (error) {
    logger.error({ err: error }, 'it could not be checked whether stored secrets can be decrypted')
  }
}

/** Stops at the first conversation whose secrets or callbacks no key opens. Reads all conversations if there is none. */
async function hasLockedSecrets(storage: Storage): Promise<boolean> {
  for (const id of await storage.ids()) if (await isLocked(storage, id)) return true
  return false
}

async function isLocked(storage: Storage, id: string): Promise<boolean> {
  const conversation = storage.conversation(id)
  try {
    await conversation.readSecrets()
  } catch (error) {
    if (error instanceof Problem && error.code === 'storage_failed') return true
    throw error
  }
  const file = CallbackFile.safeParse(await conversation.callbacks.read())
  const sealedSecrets = file.success ? file.data.callbacks.map((record) => Buffer.from(record.sealed, 'base64')) : []
  return sealedSecrets.some((bytes) => conversation.sealer.unseal(bytes) === undefined)
}
