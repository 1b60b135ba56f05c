/**
 * Finds the path under which the store has a directory. It is that of the directory itself, except in a fork: its
 * workdir is a copy, and its snapshots are those of the original.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ignoreMissing } from '../../lib/error-code.ts'

const FILE = 'moved.json'
const MovedRoots = z.record(z.string(), z.string())

/** A directory of now. */
export type RootPaths = {
  /** What the store has for it. */
  readonly key: string
  /** The path as clients see it: empty for the workdir. */
  readonly shown: string
}

export class RootKeys {
  readonly #directory: string
  /** The path in the store by the path of now. */
  #moved: ReadonlyMap<string, string> | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  /** No two directories have the same one: with the original among its own, a fork has both. */
  async keyOf(path: string): Promise<string> {
    const movedRoots = await this.#read()
    const key = movedRoots.get(path)
    if (key !== undefined) return key
    const movedKeys = new Set(movedRoots.values())
    let ownKey = path
    while (movedKeys.has(ownKey)) ownKey = `/${ownKey}`
    return ownKey
  }

  async pathOf(key: string): Promise<string> {
    // No real path begins with two slashes.
    return (await this.#read()).entries().find(([, each]) => each === key)?.[0] ?? key.replace(/^\/+/, '/')
  }

  /** The content of the file for a fork whose directories have these paths now, by those of here. */
  async moved(to: ReadonlyMap<string, string>): Promise<{ readonly name: string; readonly text: string }> {
    const keys = await Promise.all([...to].map(async ([from, now]) => [now, await this.keyOf(from)] as const))
    return { name: FILE, text: JSON.stringify(Object.fromEntries(keys)) }
  }

  async #read(): Promise<ReadonlyMap<string, string>> {
    if (this.#moved) return this.#moved
    const text = await readFile(join(this.#directory, FILE), 'utf8').catch(ignoreMissing)
    return (this.#moved = new Map(Object.entries(text === undefined ? {} : MovedRoots.parse(JSON.parse(text)))))
  }
}
