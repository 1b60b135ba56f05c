/** What the server has sent to the clients of this process by their protocols. They know nothing of it. */

let received = ''

/** Call it before the clients are made. */
export function recordWire(): void {
  const { fetch } = globalThis
  globalThis.fetch = async (...request: Parameters<typeof fetch>) => {
    const response = await fetch(...request)
    if (!new URL(response.url).pathname.startsWith('/conversations')) void readInto(response.clone())
    return response
  }
}

async function readInto(response: Response): Promise<void> {
  try {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) received += piece
  } catch {
    // The client has gone.
  }
}

export function noteFrame(frame: string): void {
  received += `${frame}\n`
}

export function clearWire(): void {
  received = ''
}

export const wireText = (): string => received
