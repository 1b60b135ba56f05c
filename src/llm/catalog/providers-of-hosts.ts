/** Whose prices hold at an endpoint. */
import { KNOWN_PREFIXES } from '../endpoint.ts'
import { ANY_PROVIDER } from './model-facts.ts'

/** Vendors that have no prefix of model names here. */
const OTHER_HOSTS: Readonly<Record<string, string>> = {
  'api.moonshot.ai': 'moonshot',
  'api.z.ai': 'zai',
  'api.minimax.io': 'minimax',
}

const isPublic = (url: string) => url !== '' && !url.startsWith('http://127.0.0.1')

const BY_HOST: ReadonlyMap<string, string> = new Map([
  ...Object.entries(KNOWN_PREFIXES).flatMap(([provider, url]) =>
    isPublic(url) ? [[new URL(url).host, provider] as const] : [],
  ),
  ...Object.entries(OTHER_HOSTS),
])

/** Providers whose models have their names from them. OpenRouter and others serve those of all. */
export const VENDORS: ReadonlySet<string> = new Set(
  [...BY_HOST.values()].filter((provider) => !['openrouter', 'groq', 'together_ai'].includes(provider)),
)

/** Returns the providers whose entries hold at a URL, the most exact first. Elsewhere the same name has another price. */
export function providersAt(baseUrl: string): readonly string[] {
  const { host } = new URL(baseUrl)
  const known = BY_HOST.get(host)
  return known === undefined ? [host, ANY_PROVIDER] : [known, host]
}

/** OpenRouter is the only one that says what each answer cost (`usage.cost`). */
export const reportsCost = (baseUrl: string): boolean => new URL(baseUrl).host === 'openrouter.ai'
