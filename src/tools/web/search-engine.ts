/** A search engine of the web, and Tavily behind it. */
import { z } from 'zod'
import { WebFault } from './web-access.ts'

export type WebQuery = {
  readonly query: string
  readonly allowedDomains: readonly string[]
  readonly blockedDomains: readonly string[]
}

export type WebHit = { readonly title: string; readonly url: string; readonly text: string }

export interface SearchEngine {
  /** The URL that its requests go to. */
  readonly address: URL
  /** Throws a `WebFault`, or what the network says. */
  search(query: WebQuery, signal: AbortSignal): Promise<readonly WebHit[]>
}

const TAVILY = 'https://api.tavily.com'

const MAX_HITS = 10

/** A longer answer is an error. */
const MAX_ANSWER_CHARS = 1_000_000

const TavilyAnswer = z.object({
  results: z.array(z.object({ title: z.string(), url: z.string(), content: z.string() })),
})

/** `baseUrl` is the operator's word, and is not judged as addresses of clients are. See https://docs.tavily.com. */
export function createTavily(apiKey: string, baseUrl: string = TAVILY): SearchEngine {
  const address = new URL('search', baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`)
  return {
    address,
    async search({ query, allowedDomains, blockedDomains }, signal) {
      const response = await fetch(address, {
        method: 'POST',
        redirect: 'error',
        signal,
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          query,
          max_results: MAX_HITS,
          ...(allowedDomains.length > 0 && { include_domains: allowedDomains }),
          ...(blockedDomains.length > 0 && { exclude_domains: blockedDomains }),
        }),
      })
      if (!response.ok) {
        await response.body?.cancel()
        throw new WebFault(
          `The search engine answered with status ${response.status}. ${ADVICE[response.status] ?? ''}`.trim(),
        )
      }
      const parseResult = TavilyAnswer.safeParse(parseAnswer(await readBounded(response)))
      if (!parseResult.success)
        throw new WebFault('The search engine answered in a form that this server does not know.')
      return parseResult.data.results
        .slice(0, MAX_HITS)
        .map(({ title, url, content }) => ({ title, url, text: content }))
    },
  }
}

const ADVICE: Readonly<Record<number, string>> = {
  401: 'TAVILY_API_KEY of the server is not valid.',
  429: 'There were too many searches; try again later.',
  432: 'The plan of the key is used up.',
}

async function readBounded(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_ANSWER_CHARS) throw new WebFault('The answer of the search engine is too long.')
  }
  return text
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // reported as a form that is unknown
  }
}
