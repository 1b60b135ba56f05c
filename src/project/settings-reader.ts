/**
 * Reads the files of one settings directory: a workdir, or the directory of the operator. The only file here that opens
 * any. Nothing outside the directory is read: a path is opened without its content, the kernel reports where it leads,
 * and only then it is read, through the same descriptor. Links inside the directory are followed.
 */
import { constants } from 'node:fs'
import { opendir } from 'node:fs/promises'
import type { EditorFiles, FoundEntry } from '../files/editor-files.ts'
import { createFileViews } from '../files/editor-files.ts'
import type { Gate } from '../files/jail/file-gate.ts'
import { createGate } from '../files/jail/file-gate.ts'
import { FileRefusal } from '../files/jail/file-refusal.ts'
import type { OpenedPath } from '../files/jail/opened-path.ts'
import { openAt, within } from '../files/jail/opened-path.ts'
import { codeOf } from '../lib/error-code.ts'
import { MAX_DEPTH, MAX_DIRECTORIES, MAX_FILE_BYTES, MAX_NAMES, MAX_TOTAL_BYTES } from './project-limits.ts'

export type ReaderOptions = {
  /** Absolute, without links. */
  readonly directory: string
  /** Files of the server, which may be inside the directory. */
  readonly forbidden: readonly string[]
  /** Returns why rules of the conversation keep a file from being read, as a sentence. */
  readonly refusalOf: (path: string) => string | undefined
  /** Shared by the readers of one conversation. */
  readonly budget: ReadBudget
}

export class ReadBudget {
  #bytesLeft = MAX_TOTAL_BYTES

  /** Returns false if fewer bytes are left. */
  take(bytes: number): boolean {
    if (bytes > this.#bytesLeft) return false
    this.#bytesLeft -= bytes
    return true
  }
}

export type ReadText =
  /** `realPath` is without links. `text` has no byte order mark, and lines end with `\n`. */
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number; readonly realPath: string }
  | { readonly kind: 'missing' }
  /** `reason` is a sentence. */
  | { readonly kind: 'refused'; readonly reason: string }

export type FoundPaths = {
  /** Relative to the directory, in order. */
  readonly paths: readonly string[]
  /** There are more, or not everything was searched. */
  readonly isCut: boolean
}

export class SettingsReader {
  readonly directory: string
  readonly #options: ReaderOptions
  readonly #files: Pick<EditorFiles, 'look'>
  readonly #gate: Gate

  constructor(options: ReaderOptions) {
    const { directory, forbidden } = options
    const rules = () => ({
      forbidden: ['/', ...forbidden.filter((path) => path !== directory)],
      permitted: [directory],
    })
    this.directory = directory
    this.#options = options
    this.#files = createFileViews(rules)
    this.#gate = createGate(rules)
  }

  /** `path` is relative to the directory. */
  async read(path: string): Promise<ReadText> {
    try {
      return this.#toText(await this.#files.look(`${this.directory}/${path}`, MAX_FILE_BYTES))
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error
      // A part of its path is a file.
      if (codeOf(error.cause) === 'ENOTDIR') return { kind: 'missing' }
      return { kind: 'refused', reason: error.isForbidden ? OUTSIDE : withoutDirectory(error.message, this.directory) }
    }
  }

  /** Finds files below a directory, in the order of their names. Directories are entered once, also through links. */
  async find(start: string, isWanted: (name: string) => boolean, limit: number): Promise<FoundPaths> {
    const search: Search = { isWanted, limit, paths: [], visited: new Set(), names: 0, isCut: false }
    await this.#search(start, 0, search)
    return { paths: search.paths.slice(0, limit), isCut: search.isCut || search.paths.length > limit }
  }

  #toText(entry: FoundEntry): ReadText {
    switch (entry.kind) {
      case 'missing':
        return { kind: 'missing' }
      case 'directory':
        return refusedText('It is a directory.')
      case 'special':
        return refusedText(`It is ${entry.what}.`)
      case 'large':
        return refusedText(`It has more than ${MAX_FILE_BYTES / 1024} KiB.`)
      case 'file': {
        const { bytes, path } = entry
        const refusal = this.#options.refusalOf(path)
        if (refusal !== undefined) return refusedText(refusal)
        if (bytes.length > MAX_FILE_BYTES || !this.#options.budget.take(bytes.length))
          return refusedText(`The files of the project have more than ${MAX_TOTAL_BYTES / 1024} KiB.`)
        const text = decodeUtf8(bytes)
        return text === undefined
          ? refusedText('It is not UTF-8 text.')
          : { kind: 'text', text, bytes: bytes.length, realPath: path }
      }
    }
  }

  async #search(path: string, depth: number, search: Search): Promise<void> {
    const { visited, paths, limit } = search
    if (paths.length > limit) return
    if (depth > MAX_DEPTH || visited.size >= MAX_DIRECTORIES) {
      search.isCut = true
      return
    }
    const openedPath = await this.#open(path)
    if (!openedPath) return
    await using directory = openedPath
    if (visited.has(directory.path)) return
    visited.add(directory.path)
    for (const { name, isFile } of await namesIn(directory, search)) {
      const inner = `${path}/${name}`
      if (search.isWanted(name)) paths.push(inner)
      else if (!isFile && !LEFT_OUT.has(name)) await this.#search(inner, depth + 1, search)
      if (paths.length > limit) return
    }
  }

  /** Undefined if it is not a directory, cannot be opened, or is outside. */
  async #open(path: string): Promise<OpenedPath | undefined> {
    let openedPath: OpenedPath | undefined
    try {
      openedPath = await openAt(`${this.directory}/${path}`, constants.O_DIRECTORY)
      await this.#gate.check(openedPath.path, 'read')
      return openedPath
    } catch (error) {
      await openedPath?.handle.close()
      if (error instanceof FileRefusal || codeOf(error) !== undefined) return undefined
      throw error
    }
  }
}

type Search = {
  readonly isWanted: (name: string) => boolean
  readonly limit: number
  readonly paths: string[]
  /** Real paths. */
  readonly visited: Set<string>
  names: number
  isCut: boolean
}

/** The directories that are never searched: they may be large, and have other projects in them. */
const LEFT_OUT = new Set(['node_modules', '.git'])

type Name = { readonly name: string; readonly isFile: boolean }

async function namesIn(directory: OpenedPath, search: Search): Promise<Name[]> {
  const names: Name[] = []
  try {
    for await (const entry of await opendir(within(directory, '.'))) {
      if (search.names >= MAX_NAMES) {
        search.isCut = true
        break
      }
      search.names += 1
      // A link may lead to a directory; pipes and devices count as files, which are opened with care.
      names.push({ name: entry.name, isFile: !entry.isDirectory() && !entry.isSymbolicLink() })
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    search.isCut = true // not readable
  }
  return names.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

const refusedText = (reason: string): ReadText => ({ kind: 'refused', reason })

const OUTSIDE = 'It leads outside the directory of the project, or to a file of the server.'

const withoutDirectory = (message: string, directory: string) => message.replaceAll(`${directory}/`, '')

/** Undefined if the bytes are not UTF-8, or have NUL characters. */
function decodeUtf8(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll(/\r\n?/g, '\n')
  } catch {
    return undefined
  }
}
