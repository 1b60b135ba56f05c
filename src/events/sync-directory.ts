/** Makes names durable: a file that was created or renamed may be nameless after a crash until its directory is synced. */
import { open } from 'node:fs/promises'

export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r')
  await directory.sync()
}
