/** A2A as its own client speaks it, and raw requests without it. */
import type { Message, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk'
import { Role } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import { KEY } from './server.ts'

export type Binding = 'JSONRPC' | 'HTTP+JSON'

/** Finds the interface of the binding in the card of the server. */
export async function a2aClient(
  url: string,
  { key = KEY, binding = 'JSONRPC' }: { key?: string; binding?: Binding } = {},
): Promise<Client> {
  const fetchImpl: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${key}`)
    return await fetch(input, { ...init, headers })
  }
  const transport =
    binding === 'JSONRPC' ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl })
  return await new ClientFactory({ transports: [transport], preferredTransports: [binding] }).createFromUrl(url)
}

export type Said = {
  readonly text?: string
  readonly data?: unknown
  readonly messageId?: string
  readonly contextId?: string
  readonly taskId?: string
  readonly profile?: string
  readonly now?: boolean
  readonly historyLength?: number
}

/** The parameters of a message. */
export function says({
  text,
  data,
  messageId = crypto.randomUUID(),
  contextId = '',
  taskId = '',
  ...more
}: Said): SendMessageRequest {
  const part = { metadata: undefined, filename: '', mediaType: '' }
  const parts: Message['parts'] = [
    ...(text === undefined ? [] : [{ ...part, content: { $case: 'text' as const, value: text } }]),
    ...(data === undefined ? [] : [{ ...part, content: { $case: 'data' as const, value: data } }]),
  ]
  const message = { messageId, contextId, taskId, role: Role.ROLE_USER, parts, metadata: undefined }
  return {
    tenant: '',
    message: { ...message, extensions: [], referenceTaskIds: [] },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: more.now ?? false,
      historyLength: more.historyLength,
    },
    metadata: more.profile === undefined ? undefined : { profile: more.profile },
  }
}

/** Says it, and resolves to the task as it is when it ends or needs input. */
export async function say(client: Client, said: Said): Promise<Task> {
  const task = await client.sendMessage(says(said))
  if (!('artifacts' in task)) throw new Error('the answer is a message')
  return task
}

/** The text of the answer. */
export const answerIn = ({ artifacts }: Pick<Task, 'artifacts'>): string =>
  artifacts
    .find(({ artifactId }) => artifactId === 'answer')
    ?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : ''))
    .join('') ?? ''

/** The data of what a task waits for. */
// oxlint-disable-next-line typescript/no-explicit-any -- each kind has other data
export const askedIn = ({ status }: Pick<Task, 'status'>): any[] =>
  (status?.message?.parts ?? []).flatMap(({ content }) => (content?.$case === 'data' ? [content.value] : []))

/** What a client has of a task that it follows. */
export async function follow(
  events: AsyncIterable<StreamResponse>,
  until: (task: Task) => boolean = () => false,
): Promise<{ task: Task; count: number }> {
  let task: Task | undefined
  let count = 0
  for await (const { payload } of events) {
    count++
    if (payload?.$case === 'task') task = structuredClone(payload.value)
    if (!task) throw new Error('the stream does not begin with a task')
    if (payload?.$case === 'statusUpdate') task.status = payload.value.status
    if (payload?.$case === 'artifactUpdate' && payload.value.artifact) {
      const { artifact, append } = payload.value
      const known = task.artifacts.find(({ artifactId }) => artifactId === artifact.artifactId)
      if (!known) task.artifacts.push(artifact)
      else known.parts = append ? [...known.parts, ...artifact.parts] : artifact.parts
    }
    if (until(task)) break
  }
  if (!task) throw new Error('the stream is empty')
  return { task, count }
}

type Sent = {
  readonly type?: string
  readonly key?: string
  readonly version?: string
  readonly method?: string
}
export type RawReply = { readonly status: number; readonly headers: Headers; readonly body: any } // eslint-disable-line typescript/no-explicit-any

/** A raw request of either binding. */
export async function sendRaw(
  url: string,
  body: unknown,
  { key = KEY, version = '1.0', method = 'POST', type = 'application/json' }: Sent = {},
): Promise<RawReply> {
  const headers = {
    ...(body !== undefined && { 'content-type': type }),
    ...(key !== '' && { authorization: `Bearer ${key}` }),
    ...(version !== '' && { 'a2a-version': version }),
  }
  const sentBody = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const response = await fetch(url, { method, headers, ...sentBody })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}
