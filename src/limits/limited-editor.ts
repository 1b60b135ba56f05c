/** The editor's files within the disk limit of their conversation. Removing files is always allowed. */
import type { EditorFiles } from '../files/editor-files.ts'
import { FileRefusal } from '../files/jail/file-refusal.ts'
import type { DiskQuota } from './disk-quota.ts'

export function limitEditor(files: EditorFiles, quota: DiskQuota): EditorFiles {
  const refuseBeyond = async (bytes: number) => {
    if (bytes <= 0 || (await quota.room()) >= bytes) return
    throw new FileRefusal(`Nothing was written. ${quota.tell({ withNames: true })} Delete files first.`)
  }
  return {
    look: (path, maxBytes) => files.look(path, maxBytes),
    list: (directory) => files.list(directory),
    async create(missing, bytes, mode) {
      // An empty file uses space, too.
      await refuseBeyond(Math.max(bytes.length, 1))
      await files.create(missing, bytes, mode)
      quota.add(bytes.length)
    },
    async replace(file, bytes) {
      const grows = bytes.length - file.bytes.length
      await refuseBeyond(grows)
      await files.replace(file, bytes)
      if (grows > 0) quota.add(grows)
    },
    remove: (file) => files.remove(file),
  }
}
