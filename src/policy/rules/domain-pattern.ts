/** What is between the parentheses of a `WebFetch(domain:…)` rule, and which URLs it matches. */
import type { Certainty } from './comparison.ts'

export type DomainPattern = { readonly host: string; readonly below: boolean }

/** Returns what is wrong as a string. */
export function parseDomainPattern(text: string): DomainPattern | string {
  const name = /^domain:(.+)$/.exec(text)?.[1]
  if (name === undefined) return 'write it as WebFetch(domain:example.org)'
  const below = name.startsWith('*.')
  const host = hostOf(`http://${below ? name.slice(2) : name}/`)
  if (host === undefined || /[/:@?#*]/.test(below ? name.slice(2) : name))
    return `${JSON.stringify(name)} is not a domain`
  return { host, below }
}

/** `*.example.org`: all names below it, but not `example.org` itself. */
export function matchUrl({ host, below }: DomainPattern, url: string | undefined): Certainty {
  const givenHost = url === undefined ? undefined : hostOf(url)
  if (givenHost === undefined) return 'maybe'
  return (below ? givenHost.endsWith(`.${host}`) : givenHost === host) ? 'yes' : 'no'
}

/** Returns the host in lower case and ASCII, as it is looked up. */
function hostOf(url: string): string | undefined {
  const host = URL.parse(url)?.hostname.replace(/\.$/, '')
  return host === '' ? undefined : host
}
