/**
 * Records which files a conversation has read, and their content hashes: a change is refused if the file was not read,
 * or has changed since. Stored in a file, so that it survives a restart. The file contains only hashes. It is not
 * synced: entries lost in a power failure must be read again.
 */
import { createHash } from 'node:crypto'
import { appendFile, readFile } from 'node:fs/promises'
import { replaceFile } from '../../lib/durable-file.ts'

/** What a conversation knows about a file. */
export type SeenState = 'current' | 'changed' | 'never'

/** Maximum number of remembered files; the least recently read one is forgotten first. */
const MAX_FILES = 2000

/** The file is rewritten when it has more lines than this. */
const MAX_LINES = 4 * MAX_FILES

export class SeenFiles {
  readonly #path: string
  /** Hash of the content by hash of the path, the latest last. */
  #loaded: Promise<Map<string, string>> | undefined
  #saved: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  /** `path` is the real one. */
  async state(path: string, content: Buffer): Promise<SeenState> {
    const knownHash = (await this.#load()).get(hash(path))
    if (knownHash === undefined) return 'never'
    return knownHash === hash(content) ? 'current' : 'changed'
  }

  /** Call it with each content that the model has been shown or has written. */
  async note(path: string, content: Buffer): Promise<void> {
    const files = await this.#load()
    const [key, value] = [hash(path), hash(content)]
    if (files.get(key) === value) return
    remember(files, key, value)
    // If it cannot be stored, the file must be read again after a restart: that is better than failing now.
    this.#saved = this.#saved.then(() => appendFile(this.#path, `${key} ${value}\n`, { mode: 0o600 })).catch(() => {})
    await this.#saved
  }

  #load(): Promise<Map<string, string>> {
    return (this.#loaded ??= this.#readAll())
  }

  async #readAll(): Promise<Map<string, string>> {
    const files = new Map<string, string>()
    const text = await readFile(this.#path, 'latin1').catch(() => '')
    const lines = text.split('\n')
    for (const line of lines) {
      const [, key, value] = LINE.exec(line) ?? []
      if (key !== undefined && value !== undefined) remember(files, key, value)
    }
    if (lines.length > MAX_LINES) await this.#compact(files)
    // A torn last line must not become part of the next.
    else if (lines.at(-1)) await appendFile(this.#path, '\n').catch(() => {})
    return files
  }

  async #compact(files: ReadonlyMap<string, string>): Promise<void> {
    const text = [...files].map(([key, value]) => `${key} ${value}\n`).join('')
    await replaceFile(this.#path, text, { durable: false, draft: `${this.#path}.new` }).catch(() => {})
  }
}

const LINE = /^([0-9a-f]{32}) ([0-9a-f]{32})$/

function remember(files: Map<string, string>, key: string, value: string): void {
  files.delete(key)
  files.set(key, value)
  for (const oldest of files.keys()) {
    if (files.size <= MAX_FILES) return
    files.delete(oldest)
  }
}

const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex').slice(0, 32)
