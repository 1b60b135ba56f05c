/** Loads the texts for the system prompt, such as CLAUDE.md, with the files that they import by `@path`. */
import { dirname, join, normalize } from 'node:path/posix'
import type { MemoryFile } from '../contract/project/project-settings.ts'
import type { SourceContext } from './load-context.ts'
import { withoutHidden } from './one-line.ts'
import { MAX_IMPORT_DEPTH, MAX_MEMORY_BYTES, MAX_MEMORY_FILES } from './project-limits.ts'

export type MemoryText = { readonly file: MemoryFile; readonly text: string }

/** Collects the texts of all sources, each file once. */
export class Memory {
  readonly texts: MemoryText[] = []
  readonly #read = new Set<string>()
  #bytes = 0

  /** Adds the file and what it imports, if it exists. */
  async load(context: SourceContext, path: string): Promise<void> {
    await this.#load(context, { path, depth: 0, from: undefined })
  }

  async #load(context: SourceContext, { path, depth, from }: WantedFile): Promise<void> {
    const { reader, source, ignored } = context
    const what = from === undefined ? 'instructions' : `import in ${from}`
    const foundText = await reader.read(path)
    if (foundText.kind === 'refused') return ignored.add(what, path, foundText.reason)
    if (foundText.kind === 'missing') {
      // A text with an @ need not be an import.
      if (from !== undefined && /\.\w+$/.test(path)) ignored.add(what, path, 'The file does not exist.')
      return
    }
    const { text, bytes, realPath } = foundText
    if (this.#read.has(realPath)) return
    this.#read.add(realPath)
    if (this.texts.length >= MAX_MEMORY_FILES || this.#bytes + bytes > MAX_MEMORY_BYTES)
      return ignored.add(what, path, TOO_MUCH)
    this.#bytes += bytes
    const importedBy = from === undefined ? {} : { imported_by: from }
    if (text.trim() !== '')
      this.texts.push({ file: { source, path, bytes, ...importedBy }, text: withoutHidden(text).trim() })
    await this.#loadImports(context, { path, depth, from }, text)
  }

  async #loadImports(context: SourceContext, { path, depth }: WantedFile, text: string): Promise<void> {
    for (const name of importsIn(text)) {
      const wantedPath = inDirectory(dirname(path), name)
      if (wantedPath === undefined)
        context.ignored.add(`import in ${path}`, name, 'It is outside the directory of the project.')
      else if (depth >= MAX_IMPORT_DEPTH) context.ignored.add(`import in ${path}`, name, TOO_DEEP)
      else await this.#load(context, { path: wantedPath, depth: depth + 1, from: path })
    }
  }
}

type WantedFile = { readonly path: string; readonly depth: number; readonly from: string | undefined }

const TOO_MUCH = `Instructions have at most ${MAX_MEMORY_BYTES / 1024} KiB in ${MAX_MEMORY_FILES} files.`
const TOO_DEEP = `Imports are at most ${MAX_IMPORT_DEPTH} levels deep.`

/** Names of one file at most. */
const MAX_IMPORTS = 200

/** The names behind `@`, except in code. Each once. */
export function importsIn(text: string): string[] {
  // oxlint-disable-next-line regexp/time -- it always finds an end, and a file has at most `MAX_FILE_BYTES`
  const prose = text.replaceAll(/^(`{3,}|~{3,})[\s\S]*?(?:^\1|(?![\s\S]))/gm, '').replaceAll(/`[^`\n]*`/g, '')
  const names = new Set<string>()
  for (const [, name] of prose.matchAll(/(?<![^\s])@((?:[^\s\\]|\\ ){1,1000})/g)) {
    if (names.size >= MAX_IMPORTS) break
    // A sentence may end behind it.
    if (name !== undefined) names.add(name.replaceAll('\\ ', ' ').replace(/(?<![,.;:!?)])[,.;:!?)]+$/, ''))
  }
  return [...names].filter((name) => name !== '' && name !== '.')
}

/** Undefined if the path is outside, as it is written. */
function inDirectory(directory: string, name: string): string | undefined {
  if (name.startsWith('/') || name.startsWith('~')) return undefined
  const path = normalize(join(directory, name))
  return path === '..' || path.startsWith('../') ? undefined : path
}
