/**
 * Applies one change to every string inside a JSON value, names of fields included, and to numbers as they are written:
 * one that would read differently becomes that text. What nothing changes in is answered as it is.
 */
export function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value)
  if (typeof value === 'number') {
    const text = String(value)
    const mapped = map(text)
    return mapped === text ? value : mapped
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => mapStrings(item, map))
    return items.every((item, at) => item === value[at]) ? value : items
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  const mapped = entries.map(([name, item]) => [map(name), mapStrings(item, map)] as const)
  const isSame = mapped.every(([name, item], at) => name === entries[at]![0] && item === entries[at]![1])
  return isSame ? value : Object.fromEntries(mapped)
}
