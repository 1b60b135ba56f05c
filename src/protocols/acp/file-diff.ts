/** What an editing tool has changed, as a diff of version 2: with absolute paths everywhere, also in the patch. */
import type { Diff, DiffChange, ToolCallContent } from '@agentclientprotocol/sdk/experimental/v2'
import { resolve } from 'node:path'
import type { FileEdit } from '../../contract/events/file-edit.ts'

/** The patch shows those of the changes that have one. */
export function diffOfEdits(edits: readonly FileEdit[], workdir: string): ToolCallContent {
  const changes = edits.map((edit) => changeOf(edit, workdir))
  const patches = edits.flatMap((edit) => (edit.patch === undefined ? [] : absolutePatch(edit, edit.patch, workdir)))
  const diff: Diff = { changes, ...(patches.length > 0 && { patch: { format: 'git_patch', text: patches.join('') } }) }
  return { type: 'diff', ...diff }
}

function changeOf({ operation, path, old_path, binary }: FileEdit, workdir: string): DiffChange {
  const absolute = resolve(workdir, path)
  const change = { path: absolute, fileType: binary ? 'binary' : 'text' }
  switch (operation) {
    case 'add':
      return { operation, ...change }
    case 'modify':
      return { operation, ...change }
    case 'delete':
      return { operation, ...change }
    case 'move':
      return { operation, oldPath: resolve(workdir, old_path ?? path), ...change }
  }
}

/** Replaces the paths in the head of the patch, before the first hunk. */
function absolutePatch({ path, old_path }: FileEdit, patch: string, workdir: string): string {
  const [newName, oldName] = [path, old_path ?? path].map((each) => quotePath(resolve(workdir, each)))
  const start = patch.startsWith('@@') ? 0 : patch.indexOf('\n@@') + 1
  const head = start === 0 && !patch.startsWith('@@') ? patch : patch.slice(0, start)
  const lines = head.split('\n').map((line) => {
    if (line.startsWith('diff --git ')) return `diff --git ${oldName} ${newName}`
    if (line.startsWith('--- ') && line !== '--- /dev/null') return `--- ${oldName}`
    if (line.startsWith('+++ ') && line !== '+++ /dev/null') return `+++ ${newName}`
    if (line.startsWith('rename from ')) return `rename from ${oldName}`
    return line.startsWith('rename to ') ? `rename to ${newName}` : line
  })
  const text = lines.join('\n') + patch.slice(head.length)
  return text.endsWith('\n') ? text : `${text}\n`
}

/** Quotes a path as git does: bytes that are not printable ASCII, quotes and backslashes are escaped. */
function quotePath(path: string): string {
  const escapedPath = [...Buffer.from(path)]
    .map((byte) => {
      const char = String.fromCodePoint(byte)
      if (char === '"' || char === '\\') return `\\${char}`
      return byte < 0x20 || byte > 0x7e ? `\\${byte.toString(8).padStart(3, '0')}` : char
    })
    .join('')
  return escapedPath === path ? path : `"${escapedPath}"`
}
