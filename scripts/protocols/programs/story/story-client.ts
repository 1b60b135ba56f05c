/** What a client of any protocol does in the one conversation that all of them have. */

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A decision, an answer to the one question, or the result of the function. */
export type Reply = { readonly allow: true } | { readonly label: string } | { readonly output: string }

export type StoryClient = AsyncDisposable & {
  /** The id of the conversation in the API, when something was said in it. */
  readonly id: () => Promise<string>
  /** Says it, and resolves to the last text of the agent when it has ended. */
  readonly say: (text: string, image?: string) => Promise<string>
  /** Says it, and resolves when the agent waits for the user. */
  readonly ask: (text: string) => Promise<void>
  /** Replies to what waits, and resolves to the last text of the agent when it has ended. */
  readonly reply: (reply: Reply) => Promise<string>
  /** Ends what the agent does. */
  readonly stop: () => Promise<void>
  /** Connects again. */
  readonly comeBack: () => Promise<void>
  /** What the client shows of the newest turn. */
  readonly shown: () => Promise<string>
}

export type StoryPlace = { readonly url: string; readonly key: string; readonly home: string }

/** Throws for an answer that is an error. */
export const post = async (place: StoryPlace, path: string, body: object) =>
  await call(place, path, { method: 'POST', body: JSON.stringify(body) })

export const get = async (place: StoryPlace, path: string) => await call(place, path, {})

async function call({ url, key }: StoryPlace, path: string, init: RequestInit): Promise<Record<string, unknown>> {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(init.body !== undefined && { 'content-type': 'application/json' }),
  }
  const response = await fetch(url + path, { headers, ...init })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
}

/** The same external id is the same conversation. */
export async function conversationOf(place: StoryPlace, external_id: string): Promise<string> {
  return String((await post(place, '/conversations', { external_id, profile: 'default' }))['id'])
}
