/** Refusals of the editor's file operations: turns system errors into messages that the model can act on. */
import { codeOf } from '../../lib/error-code.ts'

/** What is not possible, and what to do instead, worded for the model. */
export class FileRefusal extends Error {
  override readonly name = 'FileRefusal'
  /** True if a rule of the server refused it, not the file system. */
  readonly isForbidden: boolean

  constructor(message: string, { isForbidden = false, cause }: { isForbidden?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isForbidden = isForbidden
  }
}

/** Runs the work and turns system errors into a `FileRefusal`. */
export async function withRefusals<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof FileRefusal) throw error
    const code = codeOf(error)
    if (code === undefined) throw error
    throw new FileRefusal(SENTENCES[code]?.(path) ?? `${path}: the file system refused (${code}).`, { cause: error })
  }
}

const SENTENCES: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `The path ${path} does not exist. Please provide a valid path.`,
  EEXIST: (path) => `File already exists at: ${path}. Cannot overwrite files using command \`create\`.`,
  ENOTDIR: (path) => `A part of ${path} is a file and not a directory. Please provide a valid path.`,
  EACCES: (path) => `Permission denied: ${path}. You may not read or write it as this user.`,
  EPERM: (path) => `Permission denied: ${path}. You may not change it as this user.`,
  EROFS: (path) => `${path} is on a read-only file system.`,
  ELOOP: (path) => `${path} leads through too many symbolic links.`,
  ENAMETOOLONG: (path) => `The path ${path.slice(0, 100)}… is too long.`,
  ENOSPC: (path) => `There is no space left for ${path}; nothing was changed.`,
  EDQUOT: (path) => `There is no space left for ${path}; nothing was changed.`,
}
