/** Every operation of the REST API by its id, as in `openapi/openapi.json`. A test compares them. */
import { CONVERSATION_OPERATIONS } from './conversation-operations.ts'
import { SERVER_OPERATIONS } from './server-operations.ts'
import { WORK_OPERATIONS } from './work-operations.ts'
import type { Operation, ParamsOf } from './operation.ts'

type Operations = typeof SERVER_OPERATIONS & typeof CONVERSATION_OPERATIONS & typeof WORK_OPERATIONS

// The type is declared: the compiler would write each operation a second time into the declarations of the package.
export const OPERATIONS: Operations = { ...SERVER_OPERATIONS, ...CONVERSATION_OPERATIONS, ...WORK_OPERATIONS }

export type OperationId = keyof Operations
type RouteOf<Id extends OperationId> = Operations[Id]['route']
type TypesOf<Id extends OperationId> =
  Operations[Id] extends Operation<string, infer Body, infer Query, infer Reply>
    ? { body: Body; query: Query; reply: Reply }
    : never

export type BodyOf<Id extends OperationId> = TypesOf<Id>['body']
export type QueryFor<Id extends OperationId> = TypesOf<Id>['query']
export type ReplyOf<Id extends OperationId> = TypesOf<Id>['reply']
export type ParamsFor<Id extends OperationId> = ParamsOf<RouteOf<Id>>
