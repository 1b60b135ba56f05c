/** Replaces how the client of an SDK builds its requests. */
type SdkRequest = {
  readonly method: string
  readonly body?: unknown
  readonly timeout?: number | undefined
  readonly signal?: AbortSignal | null | undefined
}

/**
 * Returns what replaces `buildRequest` of a client: the request has only these headers. The SDK adds those of variables such as
 * OPENAI_CUSTOM_HEADERS, which no foreign endpoint should see, and makes headers that nobody reads.
 */
export function prepareRequests(url: string, headers: Readonly<Record<string, string>>) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the `fetch` of the client takes a plain record
  const sentHeaders = headers as unknown as Headers
  return async ({ method, body, timeout = 0, signal = null }: SdkRequest) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller sends bytes
    return { req: { method, headers: sentHeaders, body: body as Buffer, signal }, url, timeout }
  }
}
