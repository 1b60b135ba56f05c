/** Copies a store for a fork. Both share the packs on disk by hard links, and either can be removed. */
import { copyFile, link, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { codeOf } from '../../lib/error-code.ts'
import { GitStore } from './git-store.ts'

/** `from` must not be packed meanwhile. `extra` is written first: without HEAD, which comes last, there is no store. */
export async function copyStore(
  from: GitStore,
  to: string,
  extra: { readonly name: string; readonly text: string },
): Promise<void> {
  await makeDirectories(join(to, 'objects', 'pack'), 0o700)
  await makeDirectories(join(to, 'refs', 'snapshots'), 0o700)
  await writeFile(join(to, extra.name), extra.text, { mode: 0o600 })
  for (const directory of ['objects/pack', 'refs/snapshots'])
    for (const name of await readdir(join(from.directory, directory)))
      await linkOrCopy(join(from.directory, directory, name), join(to, directory, name))
  await new GitStore(to, from.git).make()
}

/** Packs and the files of snapshots are replaced and never written to. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (error: unknown) => {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(codeOf(error) ?? '')) throw error
    await copyFile(from, to)
  })
}
