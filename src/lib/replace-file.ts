/** Puts a whole file in the place of another: whoever reads finds the old one or the new one, also after a crash. */
import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Durable when it resolves; for its owner's eyes only. When it throws, the old file stays and nothing is left beside it. */
export async function replaceFile(path: string, content: Buffer | string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await using file = await open(temporary, 'wx', 0o600)
    await file.writeFile(content)
    await file.datasync()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await using parent = await open(dirname(path), 'r')
  await parent.sync()
}
