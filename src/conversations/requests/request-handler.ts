/** What each kind of request provides. The kinds that calls hold have `HeldHandler`; a kind that waits elsewhere has its own. */
import type { RequestKind } from '../../contract/requests/request-kinds.ts'
import type { AnswerOf, OpenRequestOf } from '../../contract/request.ts'

/** How an answer compares with what the log, or the memory, has of a request that is not open any more. */
export type EarlierAnswer = 'same' | 'other' | 'none' | 'unknown'

export interface RequestHandler<K extends RequestKind> {
  /**
   * The open requests, in the order in which they were opened. `client`: the name of the client of hooks that reads them, and
   * gets those alone that it may answer, whole.
   */
  open(client?: string): OpenRequestOf<K>[]
  /** Returns the answer without secrets, as it is stored and compared. */
  redact(answer: AnswerOf<K>): AnswerOf<K>
  /** Throws the `Problem` of an answer that is not possible. Changes nothing. */
  check?(requestId: string, answer: AnswerOf<K>): void
  /**
   * Returns false if no request with this id is open. Throws a `Problem` for an answer that is not possible; the
   * request still waits then. `keyName`: the API key of the client.
   */
  answer(requestId: string, answer: AnswerOf<K>, keyName: string | undefined): Promise<boolean>
  /**
   * Compares the answer to a request that is not open. Secrets that came after the earlier answer are replaced in both.
   * Throws a `Problem` for an answer that cannot be compared.
   */
  compare(requestId: string, answer: AnswerOf<K>): Promise<EarlierAnswer>
}

export type RequestHandlers = { readonly [K in RequestKind]: RequestHandler<K> }
