/** Builds what waits for users and programs. */
import type { WaitingHooks } from '../client-hooks/waiting-hooks.ts'
import { ClientCalls } from './client-calls.ts'
import type { ClientCallsDeps } from './client-calls.ts'
import type { ElicitationsDeps } from './elicitations.ts'
import { Elicitations } from './elicitations.ts'
import { HookRequests } from './hooks.ts'
import type { NetworkHostsDeps } from './network-hosts.ts'
import { NetworkHosts } from './network-hosts.ts'
import type { PermissionsDeps } from './permissions.ts'
import { Permissions } from './permissions.ts'
import type { QuestionsDeps } from './questions.ts'
import { Questions } from './questions.ts'
import { Requests } from './requests.ts'

type Parts = PermissionsDeps &
  QuestionsDeps &
  ClientCallsDeps &
  ElicitationsDeps &
  NetworkHostsDeps & { readonly waitingHooks: WaitingHooks }

export function buildRequests(parts: Parts): { readonly permissions: Permissions; readonly requests: Requests } {
  const permissions = new Permissions(parts)
  const kinds = {
    permission: permissions,
    question: new Questions(parts),
    elicitation: new Elicitations(parts),
    client_tool: new ClientCalls(parts),
    network: new NetworkHosts(parts),
    hook: new HookRequests(parts.waitingHooks),
  }
  return { permissions, requests: new Requests(kinds, parts.state) }
}
