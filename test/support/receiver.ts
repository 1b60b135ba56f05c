/** A receiver of callbacks: a real HTTP server that checks every signature and answers as the test says. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { until } from './until.ts'

export type Received = {
  /** `webhook-id`. */
  readonly id: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly body: { readonly conversation_id: string; readonly event: any } // eslint-disable-line typescript/no-explicit-any
}

/** Given each delivery when it is read; a number is the status of an empty answer. */
export type Answering = (
  received: Received,
  response: ServerResponse,
  request: IncomingMessage,
) => number | void | Promise<number | void>

export type Receiver = AsyncDisposable & {
  readonly url: string
  readonly received: readonly Received[]
  /** Deliveries of whose signature nothing was wrong, once `secret` is set. */
  secret: string | undefined
  answer: Answering
  /** Nobody listens on the port until `up`; connections that are open are cut. */
  readonly down: () => Promise<void>
  readonly up: () => Promise<void>
  /** Resolves when so many deliveries have come, whatever they were answered. */
  readonly untilReceived: (fits: (all: readonly Received[]) => boolean) => Promise<void>
}

export async function startReceiver(answer: Answering = () => 204): Promise<Receiver> {
  const received: Received[] = []
  let server: Server | undefined
  let port = 0
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece as string
    const headers = request.headers as Record<string, string>
    if (receiver.secret !== undefined) new Webhook(receiver.secret).verify(text, headers)
    const one = { id: headers['webhook-id']!, headers, text, body: JSON.parse(text) }
    received.push(one)
    const status = await receiver.answer(one, response, request)
    if (status !== undefined) response.writeHead(status).end()
  }
  const receiver: Receiver = {
    get url() {
      return `http://127.0.0.1:${port}/hook`
    },
    received,
    secret: undefined,
    answer,
    async up() {
      server = createServer((request, response) => {
        take(request, response).catch(() => response.destroyed || response.writeHead(599).end())
      })
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    },
    async down() {
      const closing = server
      server = undefined
      closing?.close()
      closing?.closeAllConnections()
      if (closing?.listening) await once(closing, 'close')
    },
    async untilReceived(fits) {
      await until('what the receiver is to get', async () => fits(received)).catch((cause: unknown) => {
        throw new Error(`not so; received: ${seqsOf(received).join(' ')}`, { cause })
      })
    },
    [Symbol.asyncDispose]: () => receiver.down(),
  }
  await receiver.up()
  return receiver
}

/** Returns the numbers in the order of arrival. */
export const seqsOf = (received: readonly Received[]): number[] => received.map(({ body }) => body.event.seq)

/** Each once, in the order they came first. */
export const firstSeqsOf = (received: readonly Received[]): number[] => [...new Set(seqsOf(received))]
