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
  /** Undefined while no secret is looked for. */
  let search: Search | undefined
  /** The text that is not yet returned; the text before it is written. */
  let heldText = ''
  /** The position at which `held` begins, in units of the whole text. */
  let start = 0

  const read = (text: string) => {
    const now = automata()
    if (now === using) return search?.scanner.scan(text)
    using = now
    search = now && new Search(now, unit)
    search?.begin(start)
    search?.scanner.scan(heldText + text)
  }

  const giveOut = (text: string, settledUpTo: number): string => {
    const all = heldText + text
    const { written, upTo } = search?.writer.write(all, start, settledUpTo) ?? {
      written: all,
      upTo: start + all.length,
    }
    heldText = all.slice(upTo - start)
    start = upTo
    return written
  }

  return {
    push(text) {
      read(text)
      if (!search && heldText === '') {
        start += text.length
        return text
      }
      return giveOut(text, search?.scanner.settled ?? Infinity)
    },
    flush() {
      search?.scanner.finish()
      const rest = heldText === '' ? '' : giveOut('', Infinity)
      start = 0
      search?.begin(0)
      return rest
    },
    // A secret that has begun continues, although its beginning is already out.
    release: () => giveOut('', Infinity),
    get held() {
      return heldText.length
    },
  }
}

/** Characters scanned at a time: some milliseconds, whatever the text. */
export const SLICE_CHARS = 16 * 1024

/** Redacts whole texts, one after the other. */
export class TextRedactor {
  readonly automata: SecretAutomata
  readonly #search: Search

  constructor(automata: SecretAutomata) {
    this.automata = automata
    this.#search = new Search(automata, 'char')
  }

  /** Leaves out the end of the text, which may begin a secret. */
  redactCutOff(text: string): string {
    const { scanner, occurrences, writer } = this.#search
    this.#search.begin(0)
    scanner.scan(text)
    const decidedUpTo = Math.max(scanner.settled, occurrences.end)
    const { written } = writer.write(text.slice(0, decidedUpTo), 0, Infinity)
    occurrences.clear()
    return written
  }

  redact(text: string): string {
    if (text.length < this.automata.shortest) return text
    const { scanner, occurrences, writer } = this.#search
    this.#search.begin(0)
    scanner.scan(text)
    scanner.finish()
    if (occurrences.isEmpty) return text
    const { written } = writer.write(text, 0, Infinity)
    occurrences.clear()
    return written
  }

  /** Redacts a long text; yields to other work in between. Not for two texts at a time. `isCutOff` is as in `redactCutOff`. */
  async redactInSlices(text: string, isCutOff = false): Promise<string> {
    const { scanner, occurrences, writer } = this.#search
    const slices = createSlices()
    const pieces: string[] = []
    let writtenUpTo = 0
    const write = (end: number, settledUpTo: number) => {
      if (occurrences.isEmpty) return
      const part = writer.write(text.slice(writtenUpTo, end), writtenUpTo, settledUpTo)
      pieces.push(part.written)
      writtenUpTo = part.upTo
    }
    this.#search.begin(0)
    for (let at = 0; at < text.length; at += SLICE_CHARS) {
      scanner.scan(text.slice(at, at + SLICE_CHARS))
      // Immediately: to write everything at the end would be one long step, and half of the text may be secrets.
      write(Math.min(at + SLICE_CHARS, text.length), scanner.settled)
      await slices.rest()
    }
    if (!isCutOff) scanner.finish()
    const end = isCutOff ? Math.max(scanner.settled, occurrences.end) : text.length
    write(end, Infinity)
    occurrences.clear()
    return pieces.length === 0 ? text.slice(0, end) : pieces.join('') + text.slice(writtenUpTo, end)
  }
}

/** Looks for the secrets of these automata in one text after the other. */
class Search {
  readonly occurrences = new Occurrences()
  readonly writer = new Writer(this.occurrences)
  readonly scanner: SecretScanner

  constructor(automata: SecretAutomata, unit: TextUnit) {
    this.scanner = new SecretScanner(automata, unit, this.occurrences)
  }

  /** Begins another text, or a part of it, at position `at`. */
  begin(at: number): void {
    this.occurrences.clear()
    this.writer.begin()
    this.scanner.begin(at)
  }
}

class Writer {
  readonly #occurrences: Occurrences
  /** The latest written occurrence. */
  #latest: Occurrence | undefined

  constructor(occurrences: Occurrences) {
    this.#occurrences = occurrences
  }

  begin(): void {
    this.#latest = undefined
  }

  /**
   * Writes the decided part of `text`, which begins at `start`: every occurrence that begins before `settled` is known.
   * Redacts everything that belongs to any occurrence; of overlapping ones, the fewest that cover them are named.
   */
  write(text: string, start: number, settledUpTo: number): { written: string; upTo: number } {
    const sortedOccurrences = this.#occurrences.sorted()
    const limit = Math.min(settledUpTo, start + text.length)
    // Joined at the end: one text that grows by each piece would be a tree of hundreds of thousands of texts.
    const pieces: string[] = []
    let at = start
    for (let next = 0; ;) {
      let furthest: Occurrence | undefined
      for (; ; next++) {
        const occurrence = sortedOccurrences[next]
        if (!occurrence || occurrence.start > at) break
        if (occurrence.end > (furthest?.end ?? at)) furthest = occurrence
      }
      if (furthest) {
        const isContinued = furthest.of !== undefined && furthest.of === this.#latest?.of && furthest.start < at
        // Another one that has begun by now may extend further.
        if (at >= settledUpTo && !isContinued) break
        if (!isContinued) pieces.push(`<secret:${furthest.name}>`)
        this.#latest = { ...furthest }
        at = furthest.end
        continue
      }
      const until = Math.min(sortedOccurrences[next]?.start ?? limit, limit)
      if (until <= at) break
      pieces.push(text.slice(at - start, until - start))
      at = until
    }
    this.#occurrences.forget(at)
    return { written: pieces.join(''), upTo: at }
  }
}
