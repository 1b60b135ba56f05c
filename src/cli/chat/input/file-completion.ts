/** Finds the files of a conversation that complete a word. */
import type { ConversationHandle } from '../../../client/conversation/conversation-handle.ts'

const FOUND_FILES = 20

/** Paths of the workdir; directories end in `/`. */
export async function findFiles(
  { files }: ConversationHandle,
  part: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (part === '' || part.endsWith('/')) {
    const { items } = await files.list({ path: part, limit: FOUND_FILES }, { signal })
    return items.map(nameOf)
  }
  const q = part.includes('/') ? `${part}*` : part
  const { items } = await files.search({ q, limit: FOUND_FILES }, { signal })
  return items.map(nameOf)
}

const nameOf = ({ path, type }: { path: string; type: string }): string => (type === 'directory' ? `${path}/` : path)
