/** A JSON value in one file, such as `callbacks.json`. */
import { readFile, rename } from 'node:fs/promises'
import { replaceFile } from '../../lib/durable-file.ts'
import { ignoreMissing } from '../../lib/error-code.ts'
import type { StoredDocument } from '../storage.ts'

export class JsonDocument implements StoredDocument {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  async read(): Promise<unknown> {
    const text = await readFile(this.#path, 'utf8').catch(ignoreMissing)
    return text === undefined ? undefined : parseJson(text)
  }

  async write(value: unknown): Promise<void> {
    await replaceFile(this.#path, JSON.stringify(value))
  }

  async setAside(): Promise<string> {
    const path = `${this.#path}.damaged`
    await rename(this.#path, path)
    return path
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
