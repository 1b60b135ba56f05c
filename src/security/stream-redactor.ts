/** Takes what was found out of text, also out of text that comes in pieces cut anywhere. */
import type { Occurrence, SecretAutomaton, State } from './secret-automaton.ts'

/**
 * Text in, the same text without secrets out: all that was pushed and flushed, joined, is what the whole text would have
 * become at once, however it was cut. It holds back only the longest end that could be the beginning of a secret.
 */
export interface StreamRedactor {
  push(text: string): string
  /** The end: what was held back is no secret. Afterwards a new text may begin. */
  flush(): string
  /** What is held back, given out for good; should it turn out to begin a secret, the rest of that is still taken out. */
  release(): string
  /** Units held back. */
  readonly held: number
}

/** `automaton` is asked at each push for the one that holds now; with another one, what is held back is read anew. */
export function createStreamRedactor(automaton: () => SecretAutomaton | undefined): StreamRedactor {
  let using: SecretAutomaton | undefined
  let state: State | undefined
  /** Not yet given out; the text before it is. */
  let held = ''
  /** Where `held` begins, in units of the whole text. */
  let start = 0
  let found: Occurrence[] = []

  const read = (text: string) => {
    const now = automaton()
    if (now === using) {
      if (using) state = using.scan(state!, text, start + held.length, found)
      return
    }
    using = now
    found = []
    state = now?.scan(now.root, held + text, start, found)
  }

  const giveOut = (text: string, settled: number): string => {
    const all = held + text
    const { written, upTo } = writeOut(all, start, found, settled)
    held = all.slice(upTo - start)
    start = upTo
    found = found.filter(({ end }) => end > upTo)
    return written
  }

  return {
    push(text) {
      read(text)
      const reach = state?.reach ?? 0
      if (reach === 0 && found.length === 0 && held === '') {
        start += text.length
        return text
      }
      return giveOut(text, start + held.length + text.length - reach)
    },
    flush() {
      const rest = giveOut('', Infinity)
      state = using?.root
      found = []
      start = 0
      return rest
    },
    // The state stays: what is begun goes on, though its beginning is out.
    release: () => giveOut('', Infinity),
    get held() {
      return held.length
    },
  }
}

/** The whole text at once. */
export function redactText(automaton: SecretAutomaton, text: string): string {
  const found: Occurrence[] = []
  automaton.scan(automaton.root, text, 0, found)
  return found.length ? writeOut(text, 0, found, Infinity).written : text
}

/**
 * Writes `text`, which begins at `start`, as far as it is decided: every occurrence that begins before `settled` is
 * known. All that belongs to any occurrence goes; where some overlap, the fewest that cover them are named.
 */
function writeOut(
  text: string,
  start: number,
  found: Occurrence[],
  settled: number,
): { written: string; upTo: number } {
  found.sort((a, b) => a.start - b.start || b.end - a.end)
  const limit = Math.min(settled, start + text.length)
  let written = ''
  let at = start
  for (let next = 0; ;) {
    let furthest: Occurrence | undefined
    for (; next < found.length && found[next]!.start <= at; next++) {
      const occurrence = found[next]!
      if (occurrence.end > (furthest?.end ?? at)) furthest = occurrence
    }
    if (furthest) {
      // Another that has begun by now may reach further still.
      if (at >= settled) break
      written += `<secret:${furthest.name}>`
      at = furthest.end
      continue
    }
    const until = Math.min(found[next]?.start ?? limit, limit)
    if (until <= at) break
    written += text.slice(at - start, until - start)
    at = until
  }
  return { written, upTo: at }
}
