/** The one place that takes secret values out of text: each becomes `<secret:NAME>`, however it is written or cut. */
import { MIN_SECRET_LENGTH } from '../contract/secret.ts'
import { SecretAutomaton } from './secret-automaton.ts'
import type { TextUnit } from './secret-forms.ts'
import { formsOf } from './secret-forms.ts'
import type { StreamRedactor } from './stream-redactor.ts'
import { createStreamRedactor, redactText } from './stream-redactor.ts'

export interface Redactor {
  /** These are the values of `name` from now on. Those under the minimal length, white space not counted, are not looked for. */
  readonly set: (name: string, ...values: readonly string[]) => void
  readonly delete: (name: string) => void
  readonly redact: (text: string) => string
  /** For text that was cut off where it could be in the middle of a secret: so much of one that it tells is left out too. */
  readonly redactCutOff: (text: string) => string
  /** For one text that comes in pieces. Changes of the values hold from the next piece on. */
  readonly stream: () => StreamRedactor
  /** The same for bytes; those that are no part of a secret stay as they are, UTF-8 or not. */
  readonly byteStream: () => ByteRedactor
}

/** As `StreamRedactor`. What `push` answers is only valid until its argument changes. */
export interface ByteRedactor {
  push(bytes: Uint8Array): Uint8Array
  flush(): Uint8Array
  release(): Uint8Array
  /** Bytes held back. */
  readonly held: number
}

export function createRedactor(): Redactor {
  const values = new Map<string, readonly string[]>()
  // Weakly: what text has made of them is larger than all else of a conversation that rests, and soon made again.
  let automata: Partial<Record<TextUnit, WeakRef<SecretAutomaton>>> = {}

  const automatonFor = (unit: TextUnit): SecretAutomaton | undefined => {
    if (values.size === 0) return undefined
    const known = automata[unit]?.deref()
    if (known) return known
    const forms = [...values].flatMap(([name, those]) => those.flatMap((value) => formsOf(name, value, unit)))
    const made = new SecretAutomaton(forms)
    automata[unit] = new WeakRef(made)
    return made
  }

  return {
    set(name, ...given) {
      const long = given.filter((value) => value.trim().length >= MIN_SECRET_LENGTH)
      const before = values.get(name) ?? []
      if (long.length === before.length && long.every((value, at) => value === before[at])) return
      if (long.length > 0) values.set(name, long)
      else values.delete(name)
      automata = {}
    },
    delete(name) {
      if (values.delete(name)) automata = {}
    },
    redact(text) {
      const automaton = automatonFor('char')
      return automaton ? redactText(automaton, text) : text
    },
    redactCutOff(text) {
      const stream = createStreamRedactor(() => automatonFor('char'))
      const safe = stream.push(text)
      return stream.held < MIN_SECRET_LENGTH ? safe + stream.flush() : safe
    },
    stream: () => createStreamRedactor(() => automatonFor('char')),
    byteStream: () => createByteRedactor(createStreamRedactor(() => automatonFor('byte'))),
  }
}

function createByteRedactor(texts: StreamRedactor): ByteRedactor {
  const bytesOf = (text: string) => Buffer.from(text, 'latin1')
  return {
    push(bytes) {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
      const safe = texts.push(text)
      return safe === text ? bytes : bytesOf(safe)
    },
    flush: () => bytesOf(texts.flush()),
    release: () => bytesOf(texts.release()),
    get held() {
      return texts.held
    },
  }
}
