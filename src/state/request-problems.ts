/** What is wrong with an answer to a request: the same for every kind. */
import { Problem } from '../contract/problem.ts'
import type { RequestKind } from '../contract/requests/request-kinds.ts'

export const requestNotFound = () =>
  new Problem('request_not_found', 'There is no request with this id here; GET requests lists those that wait.')

export const requestClosed = () =>
  new Problem(
    'request_closed',
    'This request was closed without an answer: by its deadline, a message, a rejection, an interruption or a restart of the server. GET requests lists those that wait.',
  )

export const answeredBefore = () =>
  new Problem('already_answered', 'This request was answered before; the first answer counts.')

export const isOfAnotherKind = (kind: RequestKind) =>
  new Problem('invalid_request', `This is a request of the kind ${kind}. Send an answer of that kind.`, {
    details: { kind },
  })
