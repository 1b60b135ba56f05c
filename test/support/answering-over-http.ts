/** Answers what a conversation waits for, as a client over HTTP does. */
import type { OpenRequest, OpenRequestOf } from '../../src/contract/request.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- as the helpers of tests answer
type Call = (method: string, path: string, body?: unknown) => Promise<{ status: number; body: any }>
type Server = { readonly call: Call }

async function requestsOf(server: Server, id: string, kinds = 'permission'): Promise<OpenRequest[]> {
  return (await server.call('GET', `/conversations/${id}/requests?kinds=${kinds}`)).body.items
}

/** Answers that allow, or deny, every call of the request that waits. */
export const decisionsFor = (
  { payload }: Pick<OpenRequestOf<'permission'>, 'payload'>,
  decision: { behavior: 'allow' | 'deny'; message?: string; remember?: boolean },
) => ({
  kind: 'permission' as const,
  decisions: payload.tool_uses
    .filter((use) => use.decision === undefined)
    .map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, ...decision })),
})

/** Allows the oldest permission request. Returns the response; undefined if none waits. */
export async function allowFirst(server: Server, id: string) {
  const [request] = await requestsOf(server, id)
  if (request?.kind !== 'permission') return undefined
  const answer = decisionsFor(request, { behavior: 'allow' })
  return await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, answer)
}
