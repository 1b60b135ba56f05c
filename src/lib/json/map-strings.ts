/**
 * Applies one change to every string inside a JSON value, including field names, and to numbers as they are written: a
 * number whose text changes becomes that text. Unchanged values are returned as they are.
 */
export function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value)
  if (typeof value === 'number') {
    const text = String(value)
    const mappedText = map(text)
    return mappedText === text ? value : mappedText
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => mapStrings(item, map))
    return items.every((item, at) => item === value[at]) ? value : items
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  let isSame = true
  const mappedEntries = entries.map(([name, item]) => {
    const pair = [map(name), mapStrings(item, map)] as const
    isSame &&= pair[0] === name && pair[1] === item
    return pair
  })
  return isSame ? value : Object.fromEntries(mappedEntries)
}

/**
 * Yields the texts that `mapStrings` would change: with many thousands, the caller can yield to other work in between.
 */
export function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'number') yield String(value)
  else if (Array.isArray(value)) for (const item of value) yield* stringsIn(item)
  else if (typeof value === 'object' && value !== null)
    for (const [name, item] of Object.entries(value)) {
      yield name
      yield* stringsIn(item)
    }
}
