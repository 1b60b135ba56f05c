/** A small file replaced at once and for good: whoever reads it finds the old content or the new, also after a power cut. */
import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export async function replaceFile(path: string, content: Buffer): Promise<void> {
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
