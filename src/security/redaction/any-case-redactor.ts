/** Redacts texts in which capitals mean nothing, such as the name of a host. What is found is in lower case. */
import type { AutomataOf, Secret } from './shared-automata.ts'
import { TextRedactor } from './stream-redactor.ts'

export class AnyCaseRedactor {
  readonly #secrets: ReadonlyMap<string, Secret>
  readonly #automataOf: AutomataOf
  readonly #refresh: () => void
  /** The garbage collector may take it, as it may those of `createRedactor`. */
  #texts: WeakRef<TextRedactor> | undefined

  constructor(secrets: ReadonlyMap<string, Secret>, automataOf: AutomataOf, refresh: () => void) {
    this.#secrets = secrets
    this.#refresh = refresh
    this.#automataOf = automataOf
  }

  readonly redact = (text: string): string => {
    this.#refresh()
    if (this.#secrets.size === 0) return text
    const lowerText = text.toLowerCase()
    const redactor = this.#texts?.deref() ?? this.#build()
    const redactedText = redactor.redact(lowerText)
    return redactedText === lowerText ? text : redactedText
  }

  /** Call it when the secrets have changed. */
  forget(): void {
    this.#texts = undefined
  }

  #build(): TextRedactor {
    const lowerSecrets = Array.from(this.#secrets, ([name, { values, isServerKey }]) => {
      return [name, { values: values.map((value) => value.toLowerCase()), isServerKey }] as const
    })
    const redactor = new TextRedactor(this.#automataOf(lowerSecrets))
    this.#texts = new WeakRef(redactor)
    return redactor
  }
}
