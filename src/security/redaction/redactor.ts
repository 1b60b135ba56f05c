/** The one place that takes secret values out of text: each becomes `<secret:NAME>`, however it is written or cut. */
import { MIN_SECRET_LENGTH } from '../../contract/secret.ts'
import type { SecretAutomata } from './secret-automata.ts'
import type { Secret } from './shared-automata.ts'
import { createSharedAutomata } from './shared-automata.ts'
import type { StreamRedactor } from './stream-redactor.ts'
import { createStreamRedactor, SLICE_CHARS, TextRedactor } from './stream-redactor.ts'

/**
 * Knows secrets of two kinds. Those that the agent itself has are found everywhere. Keys that it must not learn are
 * found in whole texts only, and only when all of one is there: who watches a stream, or where a text is cut, sees
 * nothing that depends on them.
 */
export interface Redactor {
  /** These are the values of `name` from now on. Those under the minimal length, white space not counted, are not looked for. */
  readonly set: (name: string, ...values: readonly string[]) => void
  /** The same for keys that the agent must not learn. */
  readonly setServerKey: (name: string, ...values: readonly string[]) => void
  readonly delete: (name: string) => void
  readonly redact: (text: string) => string
  /** The same for a text that may be long: other work has its turn in between. */
  readonly redactInSlices: (text: string) => Promise<string>
  /** For text that was cut off where it could be in the middle of a secret: its end is left out, whatever it is. */
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

export function createRedactor(automataOf = createSharedAutomata()): Redactor {
  const secrets = new Map<string, Secret>()
  // Weakly: they are larger than all else of a conversation that rests, and soon made again.
  let streams: WeakRef<SecretAutomata> | undefined
  let texts: WeakRef<TextRedactor> | undefined

  const automataFor = (wanted: (secret: Secret) => boolean): SecretAutomata | undefined => {
    const some = [...secrets].filter(([, secret]) => wanted(secret))
    return some.length === 0 ? undefined : automataOf(some)
  }

  const forStreams = (): SecretAutomata | undefined => {
    const known = streams?.deref()
    if (known) return known
    const made = automataFor(({ isServerKey }) => !isServerKey)
    streams = made && new WeakRef(made)
    return made
  }

  const forTexts = (): TextRedactor | undefined => {
    const known = texts?.deref()
    if (known) return known
    const automata = automataFor(() => true)
    const made = automata && new TextRedactor(automata)
    texts = made && new WeakRef(made)
    return made
  }

  const forget = () => {
    streams = undefined
    texts = undefined
  }

  const set = (name: string, given: readonly string[], isServerKey: boolean) => {
    const values = given.filter((value) => value.trim().length >= MIN_SECRET_LENGTH)
    const before = secrets.get(name) ?? { values: [], isServerKey }
    const isSame = values.length === before.values.length && values.every((value, at) => value === before.values[at])
    if (isSame && before.isServerKey === isServerKey) return
    if (values.length > 0) secrets.set(name, { values, isServerKey })
    else secrets.delete(name)
    forget()
  }

  const redact = (text: string) => forTexts()?.redact(text) ?? text

  return {
    set: (name, ...values) => set(name, values, false),
    setServerKey: (name, ...values) => set(name, values, true),
    delete(name) {
      if (secrets.delete(name)) forget()
    },
    redact,
    async redactInSlices(text) {
      if (text.length <= SLICE_CHARS) return redact(text)
      const known = forTexts()
      return known ? await new TextRedactor(known.automata).redactInSlices(text) : text
    },
    redactCutOff(text) {
      const automata = forStreams()
      return redact(automata ? new TextRedactor(automata).redactCutOff(text) : text)
    },
    stream: () => createStreamRedactor(forStreams, 'char'),
    byteStream: () => createByteRedactor(createStreamRedactor(forStreams, 'byte')),
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
