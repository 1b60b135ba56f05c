/** Describes what does not fit OpenAPI, as AsyncAPI 3: event streams, WebSockets and callbacks, from the same schemas. */
import { z } from 'zod'
import manifest from '../package.json' with { type: 'json' }
import { WebhookBody, WebhookHeaders } from '../src/contract/callback.ts'
import { ConversationSummaryFrame } from '../src/contract/conversations/summary.ts'
import { Event } from '../src/contract/events/event.ts'
import { TransientEvent } from '../src/contract/events/transient-event.ts'
import { StreamEvents, StreamFirehose, StreamNewConversation } from '../src/contract/events-api.ts'
import { ErrorBody } from '../src/contract/problem.ts'
import {
  AuthFrame,
  CommandFrame,
  ConversationDeletedFrame,
  ConversationServerFrame,
  CreateFrame,
  FirehoseServerFrame,
} from '../src/contract/socket.ts'

type Message = {
  readonly title: string
  readonly payload: z.ZodType
  readonly headers?: z.ZodType
  readonly summary: string
}

/** A schema is named once for all its users. */
const MESSAGES = {
  Event: { title: 'Event', summary: 'A stored event.', payload: Event },
  TransientEvent: {
    title: 'Transient event',
    summary: 'Sent live with `deltas`, never stored.',
    payload: TransientEvent,
  },
  ConversationDeleted: {
    title: 'Conversation deleted',
    summary: 'Sent live on the firehose.',
    payload: ConversationDeletedFrame,
  },
  ConversationSummary: {
    title: 'Conversation summary',
    summary: 'The row of a conversation that has changed, on the firehose with `summaries`.',
    payload: ConversationSummaryFrame,
  },
  StreamError: {
    title: 'Error',
    summary: 'The stream failed after it had begun. Reconnect with the last id.',
    payload: ErrorBody,
  },
  AuthFrame: {
    title: 'Key',
    summary: 'The first frame of a client that sent no `Authorization` header.',
    payload: AuthFrame,
  },
  CreateFrame: { title: 'Create', summary: 'The conversation to create.', payload: CreateFrame },
  CommandFrame: { title: 'Command', summary: 'A request of the client.', payload: CommandFrame },
  ConversationServerFrame: {
    title: 'Frame',
    summary: 'Events, answers, and last frames.',
    payload: ConversationServerFrame,
  },
  FirehoseServerFrame: {
    title: 'Firehose frame',
    summary: 'Events of all conversations, with a cursor.',
    payload: FirehoseServerFrame,
  },
  WebhookBody: {
    title: 'Delivery',
    summary: 'An event of the conversation, signed according to Standard Webhooks.',
    payload: WebhookBody,
    headers: WebhookHeaders,
  },
} as const satisfies Record<string, Message>

type MessageName = keyof typeof MESSAGES

type Channel = {
  readonly address: string | null
  readonly title: string
  readonly description: string
  readonly query?: z.ZodObject
  readonly method?: 'GET'
  /** What the server sends, and what it takes. */
  readonly sends: readonly MessageName[]
  readonly takes?: readonly MessageName[]
  readonly isWebSocket: boolean
}

const CHANNELS: Readonly<Record<string, Channel>> = {
  conversationStream: {
    address: '/conversations/{id}/events/stream',
    title: 'Events of a conversation (SSE)',
    description:
      'Each durable event is a frame with its seq as `id`, its type as `event` and its JSON as `data`. A comment is sent every 15 seconds. The last frame is `event: deleted`, `server_closing` or `lagged`. Reconnect with `Last-Event-ID`.',
    query: StreamEvents,
    sends: ['Event', 'TransientEvent', 'StreamError'],
    isWebSocket: false,
  },
  conversationSocket: {
    address: '/conversations/{id}/ws',
    title: 'A conversation (WebSocket)',
    description:
      'The same events as JSON frames, after a `ready`. The client can send commands; each is answered with an `ack` or a `problem`.',
    query: StreamEvents,
    sends: ['ConversationServerFrame'],
    takes: ['AuthFrame', 'CommandFrame'],
    isWebSocket: true,
  },
  newConversationSocket: {
    address: '/conversations/ws',
    title: 'A new conversation (WebSocket)',
    description:
      'Creates a conversation and connects to it. The first frame of the server is a `StatusUpdate` with its conversation_id.',
    query: StreamNewConversation,
    sends: ['ConversationServerFrame'],
    takes: ['AuthFrame', 'CreateFrame', 'CommandFrame'],
    isWebSocket: true,
  },
  firehoseStream: {
    address: '/firehose',
    title: 'Events of all conversations (SSE)',
    description:
      'Like the events of one conversation, but `id` is a cursor of the firehose. Within a conversation, events are in the order of their seqs.',
    query: StreamFirehose,
    sends: ['Event', 'TransientEvent', 'ConversationSummary', 'ConversationDeleted', 'StreamError'],
    isWebSocket: false,
  },
  firehoseSocket: {
    address: '/firehose',
    title: 'Events of all conversations (WebSocket)',
    description: 'Each event has a cursor to resume from. A plain GET of the same address returns SSE.',
    query: StreamFirehose,
    sends: ['FirehoseServerFrame'],
    takes: ['AuthFrame'],
    isWebSocket: true,
  },
  callback: {
    address: null,
    title: 'Deliveries to a callback',
    description:
      'A POST to the registered URL, in order and at least once. Any answer except 2xx is retried. Verify the signature, and detect duplicates by `webhook-id`.',
    sends: ['WebhookBody'],
    isWebSocket: false,
  },
}

/** The AsyncAPI document as text, with a newline at the end. */
export function describeChannels(): string {
  const document = {
    asyncapi: '3.1.0',
    info: {
      title: 'Agent-SDK API: streams, sockets and callbacks',
      version: manifest.version,
      description: `${manifest.description}. Requests and answers are in /openapi.json.`,
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      http: server('http', 'Event streams.'),
      ws: server('ws', 'WebSockets.'),
    },
    channels: Object.fromEntries(Object.entries(CHANNELS).map(([id, channel]) => [id, describeChannel(channel)])),
    operations: Object.fromEntries(Object.entries(CHANNELS).flatMap(operationsOf)),
    components: {
      securitySchemes: {
        BearerAuth: {
          type: 'http',
          scheme: 'bearer',
          description: 'The master key of the server. Must not be in a URL.',
        },
      },
      messages: Object.fromEntries(
        Object.entries(MESSAGES).map(([name, message]) => [name, describeMessage(name, message)]),
      ),
      schemas: schemas(),
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

const server = (protocol: 'http' | 'ws', description: string) => ({
  host: '{host}',
  protocol,
  description,
  variables: { host: { default: 'localhost:8000', description: 'Address of the server.' } },
  security: [{ $ref: '#/components/securitySchemes/BearerAuth' }],
})

function describeChannel({ address, title, description, query, sends, takes = [], isWebSocket }: Channel) {
  const parameters = address?.includes('{id}') && { id: { description: 'Id of the conversation, a UUID.' } }
  return {
    address,
    title,
    description,
    messages: Object.fromEntries([...sends, ...takes].map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    ...(parameters && { parameters }),
    ...(address !== null && { servers: [{ $ref: `#/servers/${isWebSocket ? 'ws' : 'http'}` }] }),
    ...(isWebSocket && { bindings: { ws: { method: 'GET', bindingVersion: '0.1.0' } } }),
    ...(query && { 'x-query': toJson(query) }),
  }
}

/** Returns the operations from the server's side: it sends, and it receives. */
function operationsOf([id, { title, sends, takes, isWebSocket }]: [string, Channel]) {
  const operation = (action: 'send' | 'receive', messages: readonly MessageName[]) => ({
    action,
    channel: { $ref: `#/channels/${id}` },
    summary: title,
    messages: messages.map((name) => ({ $ref: `#/channels/${id}/messages/${name}` })),
    ...(!isWebSocket && {
      bindings: { http: { method: id === 'callback' ? 'POST' : 'GET', bindingVersion: '0.3.0' } },
    }),
  })
  return [
    [`${id}Sends`, operation('send', sends)] as const,
    ...(takes ? [[`${id}Receives`, operation('receive', takes)] as const] : []),
  ]
}

function describeMessage(name: string, { title, summary, headers, payload }: Message) {
  const id = z.globalRegistry.get(payload)?.id
  if (id === undefined) throw new Error(`The payload of ${name} has no id.`)
  return { name, title, summary, ...(headers && { headers: toJson(headers) }), payload: { $ref: refTo(id) } }
}

/** All that the messages need, and nothing else. */
function schemas(): Record<string, unknown> {
  const registry = z.registry<{ id?: string }>()
  for (const [id, schema] of z.globalRegistry._idmap) registry.add(schema, { ...z.globalRegistry.get(schema), id })
  const { schemas: all } = z.toJSONSchema(registry, { ...OPTIONS, uri: refTo })
  const used = new Set<string>()
  const use = (value: unknown) => {
    for (const [, id] of JSON.stringify(value).matchAll(REF)) {
      if (used.has(id!)) continue
      used.add(id!)
      use(all[id!])
    }
  }
  for (const { payload } of Object.values(MESSAGES)) use({ $ref: refTo(z.globalRegistry.get(payload)!.id!) })
  return Object.fromEntries([...used].toSorted().map((id) => [id, bare(all[id]!)]))
}

const refTo = (id: string) => `#/components/schemas/${id}`
const REF = /"#\/components\/schemas\/([^"]+)"/g

/**
 * Makes schemas as clients send and read them: what they do not know they ignore, and what has a default need not be
 * there.
 */
const OPTIONS = {
  target: 'draft-07',
  io: 'input',
  unrepresentable: 'any',
} as const satisfies z.core.ToJSONSchemaParams

/** A schema in one piece: queries and headers are not messages, and refer to none of their schemas. */
function toJson(schema: z.ZodType): object {
  const { definitions, ...json } = z.toJSONSchema(schema, OPTIONS) as { definitions?: Record<string, object> }
  const text = JSON.stringify(json, (_, value: unknown) => {
    const name = /^#\/definitions\/(.*)$/.exec((value as { $ref?: string } | null)?.$ref ?? '')?.[1]
    return name === undefined ? value : bare(definitions?.[name] ?? {})
  })
  return bare(JSON.parse(text) as object)
}

/** Leaves out the name, which its place says, and the dialect, which the document says. */
function bare(schema: object): object {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
  return rest
}
