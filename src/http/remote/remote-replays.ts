/** Adds the replays of the other instances to a page of those of this one. */
import type { FastifyRequest } from 'fastify'
import type { Cluster } from '../../cluster/cluster.ts'
import { ReplayPage } from '../../contract/replay.ts'
import { encodePageId } from '../../lib/page-id.ts'
import { problemIn, textOf } from './remote-conversation.ts'

/** Each instance returns as many as the page has. Throws the `Problem` `owner_lost` if one does not answer, and the reason of the signal. */
export async function withOtherReplays(
  request: FastifyRequest,
  own: ReplayPage,
  limit: number,
  cluster: Pick<Cluster, 'othersFor' | 'send'>,
  signal: AbortSignal,
): Promise<ReplayPage> {
  const { access, keyFingerprint: fingerprint = '', id } = request
  const others = await cluster.othersFor(request.raw.socket)
  if (!access || others.length === 0) return own
  const sentRequest = { method: 'GET', path: request.url, headers: { 'x-request-id': id }, body: undefined, signal }
  const pages = await Promise.all(
    others.map(async (peer) => {
      const response = await cluster.send(peer, sentRequest, { fingerprint, access })
      const answer = await textOf(response)
      if (response.status !== 200) throw problemIn(answer)
      return ReplayPage.parse(JSON.parse(answer))
    }),
  )
  const all = [own, ...pages]
  const sortedReplays = all.flatMap(({ items }) => items).toSorted((one, other) => (one.id < other.id ? 1 : -1))
  const items = sortedReplays.slice(0, limit)
  const last = items.at(-1)
  const isMore = sortedReplays.length > limit || all.some(({ next_page_id: next }) => next !== null)
  return { items, next_page_id: last && isMore ? encodePageId([last.created_at, last.id]) : null }
}
