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
  const known = new Map<string, WeakRef<SecretAutomata>>()
  const collected = new FinalizationRegistry<string>((key) => {
    // It may have been rebuilt meanwhile.
    if (!known.get(key)?.deref()) known.delete(key)
  })
  return (secrets) => {
    const key = JSON.stringify(secrets)
    const shared = known.get(key)?.deref()
    if (shared) return shared
    const made = makeAutomata(secrets)
    known.set(key, new WeakRef(made))
    collected.register(made, key)
    return made
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
