/** Builds what waits for users and programs. */
import type { HeldKind } from '../../contract/requests/request-kinds.ts'
import { isHeld, REQUEST_KINDS } from '../../contract/requests/request-kinds.ts'
import type { WaitingHooks } from '../client-hooks/waiting-hooks.ts'
import { ClientCalls } from './client-calls.ts'
import type { ClientCallsDeps } from './client-calls.ts'
import type { HeldDeps } from './held-handler.ts'
import { HeldHandler } from './held-handler.ts'
import { HookRequests } from './hooks.ts'
import type { NetworkHostsDeps } from './network-hosts.ts'
import { NetworkHosts } from './network-hosts.ts'
import type { PermissionsDeps } from './permissions.ts'
import { Permissions } from './permissions.ts'
import type { QuestionsDeps } from './questions.ts'
import { Questions } from './questions.ts'
import type { RequestHandlers } from './request-handler.ts'
import { Requests } from './requests.ts'

type Parts = PermissionsDeps &
  QuestionsDeps &
  ClientCallsDeps &
  HeldDeps &
  NetworkHostsDeps & { readonly waitingHooks: WaitingHooks }

export function buildRequests(parts: Parts): { readonly permissions: Permissions; readonly requests: Requests } {
  const permissions = new Permissions(parts)
  const kinds = {
    permission: permissions,
    question: new Questions(parts),
    client_tool: new ClientCalls(parts),
    network: new NetworkHosts(parts),
    hook: new HookRequests(parts.waitingHooks),
    ...heldKinds(parts),
  }
  return { permissions, requests: new Requests(kinds, parts.state) }
}

function heldKinds(deps: HeldDeps): Pick<RequestHandlers, HeldKind> {
  const handlers = REQUEST_KINDS.filter(isHeld).map((kind) => [kind, new HeldHandler(kind, deps)])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one for each of these kinds
  return Object.fromEntries(handlers) as Pick<RequestHandlers, HeldKind>
}
