/** Returns the list. Throws if it is empty: then, whatever a test asserts about each of its elements would hold. */
export function some<T>(what: string, list: readonly T[]): readonly T[] {
  if (list.length === 0) throw new Error(`There are no ${what}: the test would pass whatever they were.`)
  return list
}
