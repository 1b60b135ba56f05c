/** What one call of a tool has changed, file by file. Loaded with the first call that changes one. */
import { isAbsolute, relative } from 'node:path'
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

/** Bytes, for all files of a call. */
const MAX_PATCHES = 64 * 1024

/** When the signal is aborted, the files that follow are listed without a patch. */
type Scene = {
  readonly workdir: string
  readonly redact: (text: string) => Promise<string>
  readonly signal: AbortSignal
}

/** Returns the edits in the order in which the files were written first. */
export async function fileEditsOf(files: readonly ChangedFile[], scene: Scene): Promise<FileEdit[]> {
  const { workdir, redact } = scene
  const edits: FileEdit[] = []
  let room = MAX_PATCHES
  for (const file of foldByPath(files)) {
    const isText = !isBinary(file.before) && !isBinary(file.after)
    const patch = isText ? await patchOf(file, room, scene) : undefined
    room -= patch === undefined ? 0 : Buffer.byteLength(patch)
    edits.push({
      operation: operationOf(file),
      path: await redact(pathIn(workdir, file.path)),
      ...(file.oldPath !== undefined && { old_path: await redact(pathIn(workdir, file.oldPath)) }),
      ...(!isText && { binary: true as const }),
      ...(patch !== undefined && { patch }),
    })
  }
  return edits
}

const operationOf = ({ oldPath, before, after }: ChangedFile): FileEdit['operation'] =>
  oldPath !== undefined ? 'move' : !before ? 'add' : !after ? 'delete' : 'modify'

/** Resolves to undefined if it would have more bytes than `room`, or if there cannot be one. */
async function patchOf(
  { path, oldPath, before, after, mode }: ChangedFile,
  room: number,
  { workdir, redact, signal }: Scene,
): Promise<string | undefined> {
  const paths = [path, oldPath ?? path].map((each) => pathIn(workdir, each))
  // Git takes no patch of a file outside of the directory that it works in.
  if (signal.aborted || paths.some((each) => isAbsolute(each))) return undefined
  // All that one of them has more is in the patch.
  if (Math.abs((before?.length ?? 0) - (after?.length ?? 0)) > room) return undefined
  // A secret of several lines is found in the text, and not in a patch, where each line has a sign before it.
  const [oldText, newText] = [before && (await redact(before.toString())), after && (await redact(after.toString()))]
  const [newPath = '', formerPath] = await Promise.all(paths.map(redact))
  const head = {
    path: newPath,
    oldPath: oldPath === undefined ? undefined : formerPath,
    mode: mode & 0o111 ? '100755' : '100644',
  }
  const patch = await gitPatch(oldText, newText, head, room)
  return patch !== undefined && Buffer.byteLength(patch) <= room ? patch : undefined
}

function pathIn(workdir: string, path: string): string {
  const inner = relative(workdir, path)
  return inner === '' || inner === '..' || inner.startsWith('../') ? path : inner
}

/** Returns one change for each file: from what it was before the call to what it is now, and none if that is the same. */
function foldByPath(changedFiles: readonly ChangedFile[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>()
  for (const file of changedFiles) {
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
