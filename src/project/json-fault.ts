/**
 * Finds what is wrong in a JSON text, with its position: the messages of `JSON.parse` quote the text and often have no
 * position. A name that is in an object twice is a fault, too: `JSON.parse` would drop the first value.
 */

/** Undefined if the text is JSON. Its nesting must be limited before. */
export function findJsonFault(text: string): string | undefined {
  try {
    new JsonScan(text).scan()
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const lines = text.slice(0, error.at).split('\n')
    const place = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
    return `${error.message} (${place}).`
  }
}

class Fault extends Error {
  readonly at: number

  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

const SPACE = /[ \t\n\r]*/y
/** A token. Of a string, only the opening quote. */
const TOKEN = /[{}[\],:"]|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|$/y
/** Some of the characters in a string. */
const CHARACTERS = /(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,4096}/y // eslint-disable-line no-control-regex

class JsonScan {
  readonly #text: string
  #at = 0
  /** The position at which the last token began. */
  #start = 0

  constructor(text: string) {
    this.#text = text
  }

  scan(): void {
    this.#value(this.#next())
    if (this.#next() !== '') throw this.#unexpected()
  }

  #value(token: string): void {
    if (token === '{') this.#items('}', this.#fields())
    else if (token === '[') this.#items(']', (first) => this.#value(first))
    else if (token === '' || /^[}\],:]/.test(token)) throw this.#unexpected()
  }

  #items(end: string, item: (first: string) => void): void {
    let token = this.#next()
    if (token === end) return
    for (;;) {
      item(token)
      token = this.#next()
      if (token === end) return
      if (token !== ',') throw this.#unexpected()
      token = this.#next()
    }
  }

  #fields(): (first: string) => void {
    const names = new Set<unknown>()
    return (token) => {
      if (!token.startsWith('"')) throw this.#unexpected()
      const name: unknown = JSON.parse(token)
      if (names.has(name)) throw new Fault('The same name is in an object twice', this.#start)
      names.add(name)
      if (this.#next() !== ':') throw this.#unexpected()
      this.#value(this.#next())
    }
  }

  /** Empty at the end of the text. */
  #next(): string {
    this.#start = this.#endOf(SPACE, this.#at) ?? this.#at
    const end = this.#endOf(TOKEN, this.#start)
    if (end === undefined) throw this.#unexpected()
    this.#at = this.#text[this.#start] === '"' ? this.#stringEnd(end) : end
    return this.#text.slice(this.#start, this.#at)
  }

  #stringEnd(start: number): number {
    let at = start
    for (let next = this.#endOf(CHARACTERS, at); next !== undefined; next = this.#endOf(CHARACTERS, at)) at = next
    if (this.#text[at] !== '"') throw this.#unexpected()
    return at + 1
  }

  /** Returns the end of the text that matches there. `pattern` is sticky. */
  #endOf(pattern: RegExp, at: number): number | undefined {
    pattern.lastIndex = at
    return pattern.test(this.#text) ? pattern.lastIndex : undefined
  }

  #unexpected(): Fault {
    return new Fault('It is not valid JSON', this.#start)
  }
}
