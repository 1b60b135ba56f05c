/** What one call of a tool has changed, file by file. Loaded with the first call that changes one. */
import { relative } from 'node:path'
import type { FileEdit } from '../../contract/events/file-edit.ts'
import type { Content } from './edit-history.ts'
import { gitPatch, isBinary } from './git-patch.ts'

/** One file as it was and as it is. `oldPath`: where it was, if the call has moved it. `mode`: its permissions. */
export type WrittenFile = {
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
export async function fileEditsOf(written: readonly WrittenFile[], { workdir, redact }: Showing): Promise<FileEdit[]> {
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
    const patch = whole !== undefined && whole.length <= room ? await redact(whole) : undefined
    room -= patch === undefined ? 0 : whole!.length
    edits.push({
      operation: oldPath !== undefined ? 'move' : !before ? 'add' : !after ? 'delete' : 'modify',
      path: await redact(path),
      ...(oldPath !== undefined && { old_path: await redact(oldPath) }),
      ...(!isText && { binary: true as const }),
      ...(patch !== undefined && { patch }),
    })
  }
  return edits
}

/** One for each file: from what it was at first to what it is at last, and none if that is the same. */
function joined(written: readonly WrittenFile[]): WrittenFile[] {
  const files = new Map<string, WrittenFile>()
  for (const file of written) {
    const first = files.get(file.path)
    files.set(file.path, first ? { ...file, before: first.before, oldPath: first.oldPath } : file)
  }
  for (const { path, oldPath } of [...files.values()]) {
    const source = oldPath === undefined ? undefined : files.get(oldPath)
    const target = files.get(path)!
    const isMoved = source?.before !== undefined && !source.after && target.after !== undefined && !target.before
    files.set(path, isMoved ? { ...target, before: source.before } : { ...target, oldPath: undefined })
    if (isMoved) files.delete(source.path)
  }
  return [...files.values()].filter(({ before, after, oldPath }) => oldPath !== undefined || !isSame(before, after))
}

const isSame = (one: Content, other: Content): boolean => (one && other ? one.equals(other) : one === other)
