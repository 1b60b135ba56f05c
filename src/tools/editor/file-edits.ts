/** What one call of a tool has changed, file by file. Loaded with the first call that changes one. */
import { relative } from 'node:path'
import type { FileEdit } from '../../contract/events/file-edit.ts'
import type { Content } from './edit-history.ts'
import { gitPatch, isBinary } from './git-patch.ts'

/** One file as it was and as it is. `oldPath`: where it was, if the call has moved it. `mode`: its permissions. */
export type ChangedFile = {
  readonly path: string
  readonly before: Content
  readonly after: Content
  readonly oldPath?: string | undefined
  readonly mode: number
}

/** Characters, for all files of a call. */
const MAX_PATCHES = 64 * 1024

type Showing = { readonly workdir: string; readonly redact: (text: string) => Promise<string> }

/** In the order in which they were written first. Redacted. */
export async function fileEditsOf(written: readonly ChangedFile[], { workdir, redact }: Showing): Promise<FileEdit[]> {
  const shown = (path: string) => {
    const inner = relative(workdir, path)
    return inner === '' || inner === '..' || inner.startsWith('../') ? path : inner
  }
  const edits: FileEdit[] = []
  let room = MAX_PATCHES
  for (const { before, after, mode, ...file } of joined(written)) {
    const path = shown(file.path)
    const oldPath = file.oldPath === undefined ? undefined : shown(file.oldPath)
    const isText = !isBinary(before) && !isBinary(after)
    const head = { path, oldPath, mode: mode & 0o111 ? '100755' : '100644' }
    const whole = isText ? await gitPatch(before, after, head) : undefined
    const fitting = whole !== undefined && whole.length <= room ? whole : undefined
    room -= fitting?.length ?? 0
    edits.push({
      operation: oldPath !== undefined ? 'move' : !before ? 'add' : !after ? 'delete' : 'modify',
      path: await redact(path),
      ...(oldPath !== undefined && { old_path: await redact(oldPath) }),
      ...(!isText && { binary: true as const }),
      ...(fitting !== undefined && { patch: await redact(fitting) }),
    })
  }
  return edits
}

/** One for each file: from what it was before the call to what it is now, and none if that is the same. */
function joined(written: readonly ChangedFile[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>()
  for (const file of written) {
    const first = files.get(file.path)
    files.set(file.path, first ? { ...file, before: first.before, oldPath: first.oldPath } : file)
  }
  const targets = files.values().filter(({ oldPath }) => oldPath !== undefined)
  for (const target of targets.toArray()) {
    const source = files.get(target.oldPath ?? '')
    const isMoved = source?.before !== undefined && !source.after && target.after !== undefined && !target.before
    files.set(target.path, isMoved ? { ...target, before: source.before } : { ...target, oldPath: undefined })
    if (isMoved) files.delete(source.path)
  }
  return [...files.values()].filter(({ before, after, oldPath }) => oldPath !== undefined || !isSame(before, after))
}

const isSame = (one: Content, other: Content): boolean => (one && other ? one.equals(other) : one === other)
