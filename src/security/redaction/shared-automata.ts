/**
 * Builds the search structures of redactors. Redactors with the same secrets share them, which is the case for most
 * conversations.
 */
import { SecretAutomata } from './secret-automata.ts'
import { patternsOf } from './secret-patterns.ts'

export type Secret = { readonly values: readonly string[]; readonly isServerKey: boolean }
export type NamedSecret = readonly [name: string, secret: Secret]
export type AutomataOf = (secrets: readonly NamedSecret[]) => SecretAutomata

/** Returns a function that keeps nothing alive: automata are rebuilt if no redactor has used them for a while. */
export function createSharedAutomata(): AutomataOf {
  const knownAutomata = new Map<string, WeakRef<SecretAutomata>>()
  const registry = new FinalizationRegistry<string>((key) => {
    // It may have been rebuilt meanwhile.
    if (!knownAutomata.get(key)?.deref()) knownAutomata.delete(key)
  })
  return (secrets) => {
    const key = JSON.stringify(secrets)
    const knownValue = knownAutomata.get(key)?.deref()
    if (knownValue) return knownValue
    const createdAutomata = makeAutomata(secrets)
    knownAutomata.set(key, new WeakRef(createdAutomata))
    registry.register(createdAutomata, key)
    return createdAutomata
  }
}

function makeAutomata(secrets: readonly NamedSecret[]): SecretAutomata {
  const patterns = secrets.flatMap(([name, { values, isServerKey }]) =>
    values.map((value) => patternsOf(name, value, isServerKey)),
  )
  const all = {
    spelled: patterns.flatMap(({ spelled }) => spelled),
    encoded: patterns.flatMap(({ encoded }) => encoded),
  }
  return new SecretAutomata(
    all,
    secrets.some(([, { isServerKey }]) => isServerKey),
  )
}
