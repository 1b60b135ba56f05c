/**
 * The prompts of earlier chats: a file with a JSON string on each line, which only its user can read. It is in the data
 * directory, which sandboxed commands cannot see. Nothing depends on it, so no failure of it is reported.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeDirectories } from '../../../files/make-directories.ts'

/** The prompt keeps as many. */
const MAX_PROMPTS = 100
/** A longer one is a paste, and would make the prompt slow. */
const MAX_PROMPT_CHARS = 10_000
/** A larger file is written again with the last prompts. */
const MAX_FILE_BYTES = 2 * MAX_PROMPTS * MAX_PROMPT_CHARS
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants

export const isRemembered = (prompt: string): boolean => prompt.length <= MAX_PROMPT_CHARS

export class PromptHistory {
  readonly #path: string | undefined
  #last: string | undefined
  #writing: Promise<void> = Promise.resolve()

  /** The history keeps nothing if `path` is undefined. */
  constructor(path: string | undefined) {
    this.#path = path
  }

  /** The last prompts, the oldest first. */
  async read(): Promise<string[]> {
    const path = this.#path
    if (path === undefined) return []
    try {
      const { text, size } = await readAll(path)
      const prompts = text.split('\n').flatMap(promptOf).slice(-MAX_PROMPTS)
      this.#last = prompts.at(-1)
      if (size > MAX_FILE_BYTES) await rewrite(path, prompts)
      return prompts
    } catch {
      return [] // it does not exist yet, or this user cannot read it
    }
  }

  /** `typed` is the prompt as it was typed: one that begins with a space is not kept, as in shells. */
  add(prompt: string, typedText: string): void {
    const path = this.#path
    if (path === undefined || typedText.startsWith(' ') || prompt === this.#last || !isRemembered(prompt)) return
    this.#last = prompt
    this.#writing = this.#writing.then(() => append(path, prompt)).catch(() => {}) // a full disk: it works without
  }

  /** Resolves when everything is written. */
  async flush(): Promise<void> {
    await this.#writing
  }
}

async function readAll(path: string): Promise<{ text: string; size: number }> {
  await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  const { size } = await ownFile(file)
  const start = Math.max(0, size - MAX_FILE_BYTES)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  return { text: buffer.toString('utf8', 0, bytesRead), size }
}

async function append(path: string, prompt: string): Promise<void> {
  await makeDirectories(dirname(path), 0o700)
  await using file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  await ownFile(file)
  await file.appendFile(`${JSON.stringify(prompt)}\n`)
}

/** Atomic: another chat can append at the same time, and may lose that prompt. */
async function rewrite(path: string, prompts: readonly string[]): Promise<void> {
  const next = `${path}.${process.pid}`
  {
    await using file = await open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
    await file.writeFile(prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(''))
  }
  await rename(next, path)
}

/** Prompts can contain secrets. */
async function ownFile(file: FileHandle) {
  const stats = await file.stat()
  if (!stats.isFile()) throw new Error('The history is not a file.')
  if ((stats.mode & 0o077) !== 0) await file.chmod(0o600)
  return stats
}

function promptOf(line: string): string[] {
  try {
    const prompt: unknown = JSON.parse(line)
    return typeof prompt === 'string' ? [prompt] : []
  } catch {
    return [] // the first line, if the beginning was cut, and the end of the file
  }
}
