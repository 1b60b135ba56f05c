/** How much of a command line is looked into. What exceeds a bound is not understood, so it needs a permission. */
import type { SyntaxNode } from 'unbash'
import type { ShellWord } from './shell-word.ts'
import { sizeOf } from './shell-word.ts'

const MAX_COMMANDS = 300
/** Bounds what the parser returns: each node costs some two microseconds. */
const MAX_NODES = 10_000
/** The words of all commands, those that they wrap included: rules are compared with each of them. */
const MAX_WORDS = 2000
const MAX_WORD_CHARS = 256 * 1024
/** The parser reads a substitution when it is looked into, all that is nested in it included: some 100 ns for a character. */
const MAX_READ_CHARS = 512 * 1024
/** Nodes that the parser reads only then. */
const READ_LATE = new Set(
  'ArithmeticExpansion Assignment CommandExpansion HereDoc ParameterExpansion ProcessSubstitution Word'.split(' '),
)

/** The bounds of one command line. Each method counts, and returns false as soon as anything exceeds its bound. */
export class ReadingBounds {
  #exceeded: string | undefined
  #commands = 0
  #nodes = 0
  #words = 0
  #wordChars = 0
  #readChars = 0

  /** Says what exceeds its bound; undefined as long as nothing does. */
  get exceeded(): string | undefined {
    return this.#exceeded
  }

  takesCommand(words: readonly ShellWord[]): boolean {
    this.#commands += 1
    if (this.#commands > MAX_COMMANDS) this.#exceeded ??= `it has more than ${MAX_COMMANDS} commands`
    return this.takesWords(words)
  }

  /** Counts four words, which cost as much as to compare the rules with its file. */
  takesRedirection(target: ShellWord): boolean {
    return this.takesWords([target], 4)
  }

  takesWords(words: readonly ShellWord[], weight = 1): boolean {
    this.#words += words.length * weight
    if (this.#words > MAX_WORDS) this.#exceeded ??= `it has more than ${MAX_WORDS} words`
    else if ((this.#wordChars += sizeOf(words)) > MAX_WORD_CHARS)
      this.#exceeded ??= 'the arguments of its commands are too long'
    return this.#exceeded === undefined
  }

  takesNode(node: SyntaxNode): boolean {
    this.#nodes += 1
    if (this.#nodes > MAX_NODES) this.#exceeded ??= `it has more than ${MAX_NODES} parts`
    return this.takesChars(READ_LATE.has(node.type) ? node.end - node.pos : 0)
  }

  takesChars(count: number): boolean {
    this.#readChars += count
    if (this.#readChars > MAX_READ_CHARS) this.#exceeded ??= 'too much of it is nested'
    return this.#exceeded === undefined
  }
}
