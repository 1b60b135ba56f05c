/**
 * Reads what the person's own instructions import by `@path`: anything of the home, if the file is next to them. Another file
 * may be from a repository: it and what it imports are in its directory, and not behind a link.
 */
import { realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { homeDirectory } from '../../config/paths.ts'
import type { FoundEntry } from '../../files/editor-files.ts'
import { createFileViews } from '../../files/editor-files.ts'
import { FileRefusal } from '../../files/jail/file-refusal.ts'
import { isInside } from '../../files/jail/is-inside.ts'
import { importsIn } from '../../project/memory.ts'
import { MAX_IMPORT_DEPTH, MAX_MEMORY_FILES } from '../../project/project-limits.ts'

/** The instructions of one file with all that it imports: each request sends them. */
export const MAX_INSTRUCTIONS_BYTES = 64 * 1024

export type ReadFile = { readonly path: string; readonly text: string }
export type Imports = {
  readonly files: readonly ReadFile[]
  /** Clauses with the name of a file and why it is not imported. */
  readonly refused: readonly string[]
}

/** `hidden`: files and directories with secrets, and of the server. */
export async function readImports(root: ReadFile, hiddenPaths: readonly string[]): Promise<Imports> {
  const home = await realpath(homeDirectory())
  return await new ImportReader(root, home, hiddenPaths).read()
}

class ImportReader {
  readonly #root: ReadFile
  /** The person alone writes there, so that links are those of the person. */
  readonly #own: string
  readonly #home: string
  readonly #look: (path: string) => Promise<FoundEntry>
  readonly #files: ReadFile[] = []
  readonly #refused: string[] = []
  readonly #seenPaths = new Set<string>()
  #bytes: number

  constructor(root: ReadFile, home: string, hiddenPaths: readonly string[]) {
    this.#root = root
    this.#own = dirname(root.path)
    this.#home = home
    this.#bytes = Buffer.byteLength(root.text)
    const views = createFileViews(() => ({ forbidden: ['/', ...hiddenPaths], permitted: [home] }))
    this.#look = (path) => views.look(path, MAX_INSTRUCTIONS_BYTES)
  }

  async read(): Promise<Imports> {
    this.#seenPaths.add(await realpath(this.#root.path))
    await this.#importsOf(this.#root, undefined, 0)
    return { files: this.#files, refused: this.#refused }
  }

  /** `scope`: the directory that it imports from; undefined for the home. */
  async #importsOf({ path: from, text }: ReadFile, scope: string | undefined, depth: number): Promise<void> {
    for (const name of importsIn(text)) {
      const path = resolve(dirname(from), name.replace(/^~(?=\/)/, homeDirectory()))
      const why = depth >= MAX_IMPORT_DEPTH ? TOO_DEEP : await this.#import(path, scope, depth)
      if (why !== undefined) this.#refused.push(`${name} of ${from} is not imported: ${why}`)
    }
  }

  /** Returns why it is not imported. Not every text with an @ is an import. */
  async #import(path: string, scope: string | undefined, depth: number): Promise<string | undefined> {
    if (scope !== undefined && !isInside(path, scope)) return 'only your own instructions import from other directories'
    const foundEntry = await this.#find(path)
    if (typeof foundEntry === 'string') return foundEntry
    if (foundEntry.kind === 'missing') return /\.\w+$/.test(path) ? 'it does not exist' : undefined
    if (foundEntry.kind === 'directory') return undefined
    if (foundEntry.kind !== 'file') return foundEntry.kind === 'large' ? TOO_MUCH : 'it is not a regular file'
    const isOwn = scope === undefined && dirname(path) === this.#own
    if (!isOwn && !this.#isUnlinked(path, foundEntry.path)) return 'a link is in its path'
    if (this.#seenPaths.has(foundEntry.path)) return undefined
    this.#seenPaths.add(foundEntry.path)
    this.#bytes += foundEntry.bytes.length
    if (this.#bytes > MAX_INSTRUCTIONS_BYTES || this.#files.length >= MAX_MEMORY_FILES) return TOO_MUCH
    if (foundEntry.bytes.includes(0)) return 'it is not a text'
    const file = { path, text: foundEntry.bytes.toString('utf8').trim() }
    if (file.text !== '') this.#files.push(file)
    await this.#importsOf(file, isOwn ? undefined : (scope ?? dirname(path)), depth + 1)
    return undefined
  }

  async #find(path: string): Promise<FoundEntry | string> {
    try {
      return await this.#look(path)
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error
      return error.isForbidden ? 'it is outside of your home, or has secrets' : 'it cannot be read'
    }
  }

  /** The home itself may be a link. */
  #isUnlinked(path: string, real: string): boolean {
    const home = homeDirectory()
    return real === path || (isInside(path, home) && real === join(this.#home, path.slice(home.length)))
  }
}

const TOO_DEEP = `imports are at most ${MAX_IMPORT_DEPTH} levels deep`
const TOO_MUCH = `instructions have at most ${MAX_INSTRUCTIONS_BYTES / 1024} KiB in ${MAX_MEMORY_FILES} files`
