/**
 * Reads the files with the rules of a tree. One that says the same as in the last look gives the same chain, which is how the
 * reader of the tree knows that the rules of a directory have not changed.
 */
import { createHash } from 'node:crypto'
import type { OpenDirectory } from './open-directory.ts'
import { inDirectory, openInner } from './open-directory.ts'
import { readUpTo } from './read-up-to.ts'
import type { RuleChain } from './rule-chain.ts'
import { bytesLeft, withRules } from './rule-chain.ts'

/** Rules of one file: what they were added to, and the result. */
export type KnownRules = { readonly outer: RuleChain; readonly digest: string; readonly chain: RuleChain }

/** The limit for all files together: rules take many times as much memory. Those of further files are read in each look. */
const MAX_KNOWN_BYTES = 256 * 1024

/** The name is not a path of a file with rules. */
const TRACKED = '.git/index'

export class RuleFiles {
  /** The key is the path of the file. */
  readonly knownRules = new Map<string, KnownRules>()
  readonly #last: ReadonlyMap<string, KnownRules> | undefined
  readonly #chains: Set<RuleChain>
  #bytes = 0

  /** `last`: those that were known after the last look. `constant`: chains that are always the same. */
  constructor(last: ReadonlyMap<string, KnownRules> | undefined, constant: readonly RuleChain[]) {
    this.#last = last
    this.#chains = new Set(constant)
  }

  /** Returns true if the next look has the same chain, unless a file has changed. */
  isKnown(chain: RuleChain): boolean {
    return this.#chains.has(chain)
  }

  /** Adds the rules of a file; those of no file, if it cannot be read. `base`: the path of the directory that they are for. */
  async add(outer: RuleChain, base: string, directory: OpenDirectory, name: string): Promise<RuleChain> {
    try {
      const read = await readUpTo(inDirectory(directory, name), { limit: bytesLeft(outer) })
      return read ? this.#chainOf(outer, base, `${base}/${name}`, read.content) : outer
    } catch {
      return outer
    }
  }

  /** Adds the rules in `.git/info/exclude`, through no link: each of these names may lead to the outside. */
  async addRepository(outer: RuleChain, root: OpenDirectory): Promise<RuleChain> {
    try {
      using git = (await openInner(root, '.git')).inner
      using info = (await openInner(git, 'info')).inner
      return await this.add(outer, '', info, 'exclude')
    } catch {
      return outer
    }
  }

  /** Returns another chain with the same rules when other files are tracked: these are not ignored. */
  withTracked(outer: RuleChain, digest: string): RuleChain {
    if (digest === '') return outer
    const last = this.#last?.get(TRACKED)
    const chain = last?.outer === outer && last.digest === digest ? last.chain : [...outer]
    this.knownRules.set(TRACKED, { outer, digest, chain })
    this.#chains.add(chain)
    return chain
  }

  #chainOf(outer: RuleChain, base: string, path: string, text: Buffer): RuleChain {
    const digest = createHash('sha256').update(text).digest('hex')
    const last = this.#last?.get(path)
    const isSame = last?.outer === outer && last.digest === digest
    const chain = isSame ? last.chain : withRules(outer, base, text.toString('latin1'))
    this.#bytes += text.length
    if (this.#bytes > MAX_KNOWN_BYTES) return chain
    this.knownRules.set(path, { outer, digest, chain })
    this.#chains.add(chain)
    return chain
  }
}
