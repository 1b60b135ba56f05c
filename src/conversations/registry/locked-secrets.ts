/** Whether something at rest was encrypted with a key that the server does not have now. Only asked when a key is missing. */
import { Problem } from '../../contract/problem.ts'
import type { Storage } from '../../storage/storage.ts'
import { CallbackFile } from '../../webhooks/callback-record.ts'

/** Stops at the first conversation whose secrets or callbacks no key opens. Reads all conversations if there is none. */
export async function hasLockedSecrets(storage: Storage): Promise<boolean> {
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
