/** The one place that redacts secret values in text: each becomes `<secret:NAME>`, however it is written or split. */
import { MIN_SECRET_LENGTH } from '../../contract/secret.ts'
import { AnyCaseRedactor } from './any-case-redactor.ts'
import type { SecretAutomata } from './secret-automata.ts'
import type { Secret } from './shared-automata.ts'
import { createSharedAutomata } from './shared-automata.ts'
import type { StreamRedactor } from './stream-redactor.ts'
import { createStreamRedactor, SLICE_CHARS, TextRedactor } from './stream-redactor.ts'

/**
 * Handles two kinds of secrets. Those that the agent itself has are found everywhere. Keys that it must not learn are
 * found only in whole texts, and only if they are complete: nothing that a reader of a stream sees, and no place where
 * a text is cut, depends on them.
 */
export interface Redactor {
  /** Sets the values of `name`. Values shorter than the minimum, not counting white space, are not redacted. */
  readonly set: (name: string, ...values: readonly string[]) => void
  /** The same for keys that the agent must not learn. */
  readonly setServerKey: (name: string, ...values: readonly string[]) => void
  readonly delete: (name: string) => void
  readonly redact: (text: string) => string
  /** The same for a text in which capitals mean nothing: see `AnyCaseRedactor`. */
  readonly redactAnyCase: (text: string) => string
  /** Redacts a text that may be long; yields to other work in between. */
  readonly redactInSlices: (text: string) => Promise<string>
  /** Redacts a text that may have been cut in the middle of a secret: leaves out its end, whatever it is. */
  readonly redactCutOff: (text: string) => string
  /** The same for a text that may be long; yields to other work in between. */
  readonly redactCutOffInSlices: (text: string) => Promise<string>
  /** Redacts one text that arrives in pieces. Changes of the values apply from the next piece on. */
  readonly stream: () => StreamRedactor
  /** The same for bytes; bytes outside secrets are unchanged, UTF-8 or not. */
  readonly byteStream: () => ByteRedactor
}

/** The redactor is like `StreamRedactor`. The result of `push` is valid only until its argument changes. */
export interface ByteRedactor {
  push(bytes: Uint8Array): Uint8Array
  flush(): Uint8Array
  release(): Uint8Array
  /** Number of buffered bytes. */
  readonly held: number
}

/** `refresh` sets the values that may have changed by themselves. It is called before text is redacted, and must be fast. */
export function createRedactor(
  automataOf = createSharedAutomata(),
  refresh?: (set: Redactor['set']) => void,
): Redactor {
  const secrets = new Map<string, Secret>()
  const anyCase = new AnyCaseRedactor(secrets, automataOf, () => refresh?.(setOwn))
  // Weak references: they are larger than everything else in an idle conversation, and quickly rebuilt.
  /** Null if no secret is looked for in streams. */
  let streams: WeakRef<SecretAutomata> | null | undefined
  let texts: WeakRef<TextRedactor> | undefined

  const forStreams = (): SecretAutomata | undefined => {
    refresh?.(setOwn)
    const knownAutomata = streams?.deref()
    if (knownAutomata || streams === null) return knownAutomata
    const ownSecrets = [...secrets].filter(([, { isServerKey }]) => !isServerKey)
    const createdAutomata = ownSecrets.length > 0 ? automataOf(ownSecrets) : undefined
    streams = createdAutomata ? new WeakRef(createdAutomata) : null
    return createdAutomata
  }

  const forTexts = (): TextRedactor | undefined => {
    refresh?.(setOwn)
    const knownRedactor = texts?.deref()
    if (knownRedactor || secrets.size === 0) return knownRedactor
    const createdRedactor = new TextRedactor(automataOf([...secrets]))
    texts = new WeakRef(createdRedactor)
    return createdRedactor
  }

  const forget = () => {
    streams = texts = undefined
    anyCase.forget()
  }

  const set = (name: string, givenValues: readonly string[], isServerKey: boolean) => {
    const values = givenValues.filter((value) => value.trim().length >= MIN_SECRET_LENGTH)
    const before = secrets.get(name) ?? { values: [], isServerKey }
    const isSame = values.length === before.values.length && values.every((value, at) => value === before.values[at])
    if (isSame && before.isServerKey === isServerKey) return
    if (values.length > 0) secrets.set(name, { values, isServerKey })
    else secrets.delete(name)
    forget()
  }

  const setOwn: Redactor['set'] = (name, ...values) => set(name, values, false)

  const redact = (text: string) => forTexts()?.redact(text) ?? text

  const redactInSlices = async (text: string) => {
    if (text.length <= SLICE_CHARS) return redact(text)
    const knownRedactor = forTexts()
    return knownRedactor ? await new TextRedactor(knownRedactor.automata).redactInSlices(text) : text
  }

  return {
    set: setOwn,
    setServerKey: (name, ...values) => set(name, values, true),
    delete(name) {
      if (secrets.delete(name)) forget()
    },
    redact,
    redactAnyCase: anyCase.redact,
    redactInSlices,
    redactCutOff(text) {
      const automata = forStreams()
      return redact(automata ? new TextRedactor(automata).redactCutOff(text) : text)
    },
    async redactCutOffInSlices(text) {
      const automata = forStreams()
      return await redactInSlices(automata ? await new TextRedactor(automata).redactInSlices(text, true) : text)
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
