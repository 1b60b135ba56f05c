/** The address of what is shown, after `#`: it needs no route of the server and works below any path of a proxy. */
import { computed, signal } from '@preact/signals'

export type Route = { readonly path: readonly string[]; readonly query: URLSearchParams }

const hash = signal(location.hash)
addEventListener('hashchange', () => (hash.value = location.hash))

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?', 2)
  return { path: path.split('/').filter(Boolean).map(decodePart), query: new URLSearchParams(query) }
})

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const addressOf = (...path: readonly string[]): string => `#/${path.map(encodeURIComponent).join('/')}`

/** Changes the query without an entry in the history: going back leaves the screen. */
export function setQuery(values: Readonly<Record<string, string | undefined>>): void {
  const query = new URLSearchParams(Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1])))
  const address = addressOf(...route.peek().path)
  history.replaceState(undefined, '', query.size > 0 ? `${address}?${query}` : address)
  hash.value = location.hash
}

export function show(...path: readonly string[]): void {
  location.hash = addressOf(...path)
}

/** Returns what shows a screen when something has ended, unless the person has gone elsewhere meanwhile. */
export function showFromHere(): typeof show {
  const before = hash.peek()
  return (...path) => {
    if (hash.peek() === before) show(...path)
  }
}
