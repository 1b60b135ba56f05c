/** Forwards requests of conversations that another instance owns. The only file that decides which these are. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Access } from '../../access/access.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Rights } from '../../cluster/rights.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { CREATED } from '../../conversations/registry/pending-requests.ts'
import type { RemoteConversations } from '../remote/remote-conversations.ts'
import { closeSignal } from '../request/close-signal.ts'
import { namedConversation } from '../request/named-conversation.ts'
import { ownKey } from './limited-requests.ts'
import { hasBody } from './slow-bodies.ts'

export type Peers = {
  readonly cluster: Pick<
    Cluster,
    'ownerElsewhere' | 'likelyOwnerElsewhere' | 'ownerOfKey' | 'ownerOfReplay' | 'successor' | 'send'
  >
  readonly remote: Pick<RemoteConversations, 'find' | 'elsewhere'>
}
type OwnerLookup = Pick<ConversationManager, 'find' | 'beginRequest'>
type Owner = NonNullable<Awaited<ReturnType<Cluster['ownerElsewhere']>>>

/** Headers that are about one connection, and those that the connection between instances has instead. */
const OF_CONNECTION = new Set(
  (
    'connection keep-alive transfer-encoding upgrade te trailer expect ' +
    'proxy-authenticate proxy-authorization proxy-connection authorization cookie x-login x-request-id'
  ).split(' '),
)

/** An instance that stops begins none of these. */
const BEGINS: ReadonlySet<string | undefined> = new Set(['/conversations', '/replays'])

/**
 * Returns the instance that must answer; undefined if this one does. That is so for a route that talks to the owner itself, too:
 * then `request.remote` is set.
 */
export async function findOwner(request: FastifyRequest, { cluster, remote }: Peers): Promise<Owner | undefined> {
  const id = namedConversation(request)
  const { config, method, url } = request.routeOptions
  const key = creates(request) && request.access && creationKey(request, request.access)
  const maker = key ? await cluster.ownerOfKey(request.raw.socket, key) : undefined
  // A repeated fork is for the instance that has the fork: another one may have its original.
  if (maker === 'here' && id !== undefined) return undefined
  if (maker && maker !== 'here') return maker
  if (url === '/replays/:replay_id' && method === 'DELETE') return await replayOwner(request, cluster)
  if (BEGINS.has(url) && method === 'POST' && request.access) return await cluster.successor()
  if (id === undefined || !request.access) return undefined
  if (!config.outlivesOwner) return await cluster.likelyOwnerElsewhere(request.raw.socket, id)
  request.elsewhere = remote.elsewhere(request, id)
  request.remote = await remote.find(request, id)
  return undefined
}

/** Each instance can show a replay: only the one that has it can cancel it. */
async function replayOwner(request: FastifyRequest, cluster: Peers['cluster']): Promise<Owner | undefined> {
  const { replay_id: id } = ReplayPath.parse(request.params)
  return id === undefined || !request.access ? undefined : await cluster.ownerOfReplay(request.raw.socket, id)
}

const ReplayPath = z.object({ replay_id: z.uuid().toLowerCase().optional().catch(undefined) })

/** While the response is made, an instance that stops keeps the conversation. */
export function beginRequest(request: FastifyRequest, reply: FastifyReply, manager: OwnerLookup): void {
  const names = request.access ? namesOf(request) : []
  if (names.length > 0 && !reply.raw.closed) reply.raw.once('close', manager.beginRequest(names))
}

function namesOf(request: FastifyRequest): string[] {
  const { config, method, url = '' } = request.routeOptions
  const id = namedConversation(request)
  // Its answer can be as long as a run.
  if (config.conversationOf) return []
  // A stream continues at the next owner, and so does the wait for a run, which must have its response.
  if (config.outlivesOwner) return method === 'GET' ? [] : [url]
  return [...(id === undefined ? [] : [id]), ...(creates(request) ? [CREATED] : [])]
}

const creates = ({ routeOptions: { method, url } }: FastifyRequest): boolean =>
  method === 'POST' && (url === '/conversations' || url === '/conversations/:id/fork')

/** The key of the conversation that the request makes, as it is stored. */
function creationKey({ headers, routeOptions: { config } }: FastifyRequest, access: Access): string | undefined {
  const key = headers['idempotency-key']
  return typeof key === 'string'
    ? ownKey(access, { key: `${config.creationPrefix ?? ''}${key}`, bodyHash: '' })?.key
    : undefined
}

/** Another instance may have created the conversation before it died, and a limited key sees only those that are known. */
export async function learnConversation(request: FastifyRequest, manager: OwnerLookup): Promise<void> {
  const id = namedConversation(request)
  if (id !== undefined && request.access?.isLimited) await manager.find(id)
}

/** Forwards requests whose body names the conversation, after it was read. An instance that stops begins no conversation. */
export function forwardByBody(app: FastifyInstance, peers: Peers): void {
  app.addHook('preHandler', async (request, reply) => {
    const { conversationInBody, creationPrefix } = request.routeOptions.config
    if (!conversationInBody || !request.access) return
    const id = await conversationInBody(request.body, request)
    const { cluster } = peers
    const { socket } = request.raw
    const key = id === undefined && creationPrefix !== undefined && creationKey(request, request.access)
    const maker = key ? await cluster.ownerOfKey(socket, key) : undefined
    const other = maker === 'here' ? undefined : maker
    const owner = other ?? (await (id === undefined ? cluster.successor() : cluster.ownerElsewhere(socket, id)))
    if (!owner) return
    // The audit line names it.
    request.conversationId = id
    await forward(request, reply, peers, owner, { id, body: JSON.stringify(request.body) })
  })
}

type ReadRequest = { readonly id: string | undefined; readonly body: string | IncomingMessage | undefined }

/** Answers as the owner does. The request is sent at most once. Throws the `Problem` `owner_lost`. */
export async function forward(
  request: FastifyRequest,
  reply: FastifyReply,
  peers: Peers,
  owner: Owner,
  { id, body }: ReadRequest = { id: namedConversation(request), body: bodyOf(request) },
): Promise<void> {
  const { access, keyFingerprint: fingerprint = '' } = request
  if (!access) return
  // All conversations of a key may be too much for the headers.
  const rights = { fingerprint, access: id === undefined ? access : access.within(id) }
  await answerAsOwner(request, reply, peers, { owner, body, rights })
}

/**
 * Does the same for a route without a key that is about this conversation. Resolves to false if no other instance has it, and
 * there is no answer yet.
 */
export async function forwardPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  peers: Peers,
  id: string,
): Promise<boolean> {
  const owner = await peers.cluster.ownerElsewhere(request.raw.socket, id)
  const access = new Access(undefined, [], {}, new AbortController().signal)
  if (owner) await answerAsOwner(request, reply, peers, { owner, body: undefined, rights: { fingerprint: '', access } })
  return owner !== undefined
}

type OwnerRequest = { readonly owner: Owner; readonly body: ReadRequest['body']; readonly rights: Rights }

async function answerAsOwner(
  request: FastifyRequest,
  reply: FastifyReply,
  { cluster }: Peers,
  { owner, body: sentBody, rights }: OwnerRequest,
): Promise<void> {
  const { raw } = request
  const { 'content-length': _, ...otherHeaders } = raw.headers
  const forwarding = {
    method: request.method,
    path: request.url,
    headers: {
      ...withoutConnection(typeof sentBody === 'string' ? otherHeaders : raw.headers),
      'x-request-id': request.id,
    },
    body: sentBody,
    signal: closeSignal(reply),
  }
  const { status, headers, body } = await cluster.send(owner, forwarding, rights)
  // The client sees that the response was cut off: nothing more can be said after its head.
  body.once('error', () => reply.raw.destroy())
  await reply.code(status).headers(withoutConnection(headers)).send(body)
  // The client has left: without this, Fastify would call the handler, and the request would be executed here as well.
  if (!reply.sent) reply.hijack()
}

const bodyOf = ({ raw }: FastifyRequest): IncomingMessage | undefined => (hasBody(raw) ? raw : undefined)

function withoutConnection(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || OF_CONNECTION.has(name) ? [] : [[name, value] as const],
  )
  return Object.fromEntries(entries)
}
