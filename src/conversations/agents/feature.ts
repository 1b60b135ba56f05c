/**
 * A part of a conversation that only some conversations use, such as hooks or subagents. It is built when it is used
 * first, and nothing of it runs before that.
 */
export class Feature<Part> {
  readonly #build: () => Part
  readonly #isUsed: () => boolean
  #built: Part | undefined

  /** `isUsed`: whether the settings, or what is open in the log, need the part. */
  constructor(build: () => Part, isUsed: () => boolean) {
    this.#build = build
    this.#isUsed = isUsed
  }

  /** Undefined if nothing has used it yet. */
  get current(): Part | undefined {
    return this.#built ?? (this.#isUsed() ? this.use() : undefined)
  }

  /** Returns what was built, whether it is used now or not. */
  get built(): Part | undefined {
    return this.#built
  }

  use(): Part {
    return (this.#built ??= this.#build())
  }
}
