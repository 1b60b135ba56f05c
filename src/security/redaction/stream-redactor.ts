/** Redacts the found secrets in text, including text in pieces that are split anywhere. */
import { createSlices } from '../../lib/time-slices.ts'
import type { Occurrence } from './occurrences.ts'
import { Occurrences } from './occurrences.ts'
import type { SecretAutomata } from './secret-automata.ts'
import type { TextUnit } from './secret-scanner.ts'
import { SecretScanner } from './secret-scanner.ts'

/**
 * Redacts a text in pieces: all results of push and flush, joined, equal the redacted whole text, however it was split.
 * It buffers the last bytes pushed, as many as the longest secret minus one, or fewer: only back to the last line break
 * if no secret continues after one. So what is shown, and when, is the same for any text of that length and form,
 * whether or not it begins like a secret.
 */
export interface StreamRedactor {
  push(text: string): string
  /** The end of the text: the buffered part is not a secret. Afterwards a new text may begin. */
  flush(): string
  /** Returns the buffered part permanently; if it turns out to begin a secret, the rest of that is still redacted. */
  release(): string
  /** Number of buffered units. */
  readonly held: number
}

/**
 * `automata` is called at each push for the current secrets; if they have changed, the buffered part is scanned again.
 */
export function createStreamRedactor(automata: () => SecretAutomata | undefined, unit: TextUnit): StreamRedactor {
  let using: SecretAutomata | undefined
  let scanner: SecretScanner | undefined
  const found = new Occurrences()
  const writer = new Writer(found)
  /** Not yet returned; the text before it is written. */
  let held = ''
  /** Where `held` begins, in units of the whole text. */
  let start = 0

  const read = (text: string) => {
    const now = automata()
    if (now === using) {
      scanner?.scan(text)
      return
    }
    using = now
    found.clear()
    scanner = now && new SecretScanner(now, unit, found)
    scanner?.begin(start)
    scanner?.scan(held + text)
  }

  const giveOut = (text: string, settled: number): string => {
    const all = held + text
    const { written, upTo } = writer.write(all, start, settled)
    held = all.slice(upTo - start)
    start = upTo
    return written
  }

  return {
    push(text) {
      read(text)
      if (!scanner && held === '') {
        start += text.length
        return text
      }
      return giveOut(text, scanner?.settled ?? Infinity)
    },
    flush() {
      scanner?.finish()
      const rest = held === '' ? '' : giveOut('', Infinity)
      start = 0
      found.clear()
      writer.begin()
      scanner?.begin(0)
      return rest
    },
    // A secret that has begun continues, although its beginning is already out.
    release: () => giveOut('', Infinity),
    get held() {
      return held.length
    },
  }
}

/** Characters scanned at a time: some milliseconds, whatever the text. */
export const SLICE_CHARS = 16 * 1024

/** Redacts whole texts, one after the other. */
export class TextRedactor {
  readonly automata: SecretAutomata
  readonly #found = new Occurrences()
  readonly #writer = new Writer(this.#found)
  readonly #scanner: SecretScanner

  constructor(automata: SecretAutomata) {
    this.automata = automata
    this.#scanner = new SecretScanner(automata, 'char', this.#found)
  }

  /** Leaves out the end of the text, which may begin a secret. */
  redactCutOff(text: string): string {
    this.#scanner.begin(0)
    this.#scanner.scan(text)
    const decided = Math.max(this.#scanner.settled, this.#found.end)
    this.#writer.begin()
    const { written } = this.#writer.write(text.slice(0, decided), 0, Infinity)
    this.#found.clear()
    return written
  }

  redact(text: string): string {
    if (text.length < this.automata.shortest) return text
    this.#scanner.begin(0)
    this.#scanner.scan(text)
    return this.#finish(text)
  }

  /** Redacts a long text; yields to other work in between. Not for two texts at a time. `isCutOff` is as in `redactCutOff`. */
  async redactInSlices(text: string, isCutOff = false): Promise<string> {
    const slices = createSlices()
    const pieces: string[] = []
    let written = 0
    const write = (end: number, settled: number) => {
      if (this.#found.isEmpty) return
      const part = this.#writer.write(text.slice(written, end), written, settled)
      pieces.push(part.written)
      written = part.upTo
    }
    this.#scanner.begin(0)
    this.#writer.begin()
    for (let at = 0; at < text.length; at += SLICE_CHARS) {
      this.#scanner.scan(text.slice(at, at + SLICE_CHARS))
      // Immediately: to write everything at the end would be one long step, and half of the text may be secrets.
      write(Math.min(at + SLICE_CHARS, text.length), this.#scanner.settled)
      await slices.rest()
    }
    if (!isCutOff) this.#scanner.finish()
    const end = isCutOff ? Math.max(this.#scanner.settled, this.#found.end) : text.length
    write(end, Infinity)
    this.#found.clear()
    return pieces.length === 0 ? text.slice(0, end) : pieces.join('') + text.slice(written, end)
  }

  #finish(text: string): string {
    this.#scanner.finish()
    if (this.#found.isEmpty) return text
    this.#writer.begin()
    const { written } = this.#writer.write(text, 0, Infinity)
    this.#found.clear()
    return written
  }
}

class Writer {
  readonly #found: Occurrences
  /** The latest written occurrence. */
  #latest: Occurrence | undefined

  constructor(found: Occurrences) {
    this.#found = found
  }

  begin(): void {
    this.#latest = undefined
  }

  /**
   * Writes the decided part of `text`, which begins at `start`: every occurrence that begins before `settled` is known.
   * Redacts everything that belongs to any occurrence; of overlapping ones, the fewest that cover them are named.
   */
  write(text: string, start: number, settled: number): { written: string; upTo: number } {
    const found = this.#found.sorted()
    const limit = Math.min(settled, start + text.length)
    // Joined at the end: one text that grows by each piece would be a tree of hundreds of thousands of texts.
    const pieces: string[] = []
    let at = start
    for (let next = 0; ;) {
      let furthest: Occurrence | undefined
      for (; ; next++) {
        const occurrence = found[next]
        if (!occurrence || occurrence.start > at) break
        if (occurrence.end > (furthest?.end ?? at)) furthest = occurrence
      }
      if (furthest) {
        const isContinued = furthest.of !== undefined && furthest.of === this.#latest?.of && furthest.start < at
        // Another one that has begun by now may extend further.
        if (at >= settled && !isContinued) break
        if (!isContinued) pieces.push(`<secret:${furthest.name}>`)
        this.#latest = { ...furthest }
        at = furthest.end
        continue
      }
      const until = Math.min(found[next]?.start ?? limit, limit)
      if (until <= at) break
      pieces.push(text.slice(at - start, until - start))
      at = until
    }
    this.#found.forget(at)
    return { written: pieces.join(''), upTo: at }
  }
}
