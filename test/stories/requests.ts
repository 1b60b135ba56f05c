/** What stories do with the requests of a conversation, over HTTP. */
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import type { RequestAccepted } from '../../src/contract/request.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import type { Answer, TestServer } from '../support/server.ts'

type Call = TestServer['call']

/** Those of one kind that wait, the oldest first. */
// oxlint-disable-next-line typescript/no-explicit-any -- as HTTP returns them
export async function requestsOf(call: Call, id: string, kind: RequestKind): Promise<any[]> {
  const { status, body } = await call('GET', `/conversations/${id}/requests?kinds=${kind}`)
  if (status !== 200) throw new Error(`requests: ${status} ${JSON.stringify(body)}`)
  return body.items
}

/** The body is what a test wants to send, also if it is wrong. */
export const answer = (call: Call, id: string, requestId: string, body?: unknown): Promise<Answer> =>
  call('POST', `/conversations/${id}/requests/${requestId}`, body)

/** Allows every call of a permission request that waits. Throws unless it was answered. */
export async function approve(call: Call, id: string, requestId: string): Promise<RequestAccepted> {
  const request = (await requestsOf(call, id, 'permission')).find(({ request_id }) => request_id === requestId)
  if (request === undefined) throw new Error(`no permission request ${requestId}`)
  const { status, body } = await answer(call, id, requestId, decisionsFor(request, { behavior: 'allow' }))
  if (status !== 200) throw new Error(`approve: ${status} ${JSON.stringify(body)}`)
  return body
}
