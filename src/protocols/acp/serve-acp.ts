/** Serves one client of this server. What it asks for are requests to the API, with the permissions of its key. */
import type { FastifyRequest } from 'fastify'
import { createClient } from '../../client/client.ts'
import { CreateConversation } from '../../contract/conversation.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { Access } from '../../access/access.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import type { Profiles } from '../../conversations/profiles/profiles.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { createOrFind } from '../../http/guards/create-or-find.ts'
import { createAs } from '../../http/guards/limited-requests.ts'
import type { InnerConnections } from '../../http/local/inner-connections.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { logCommand } from '../../http/request/request-log.ts'
import type { SocketConnection } from '../../http/socket/connection.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { oneLine } from '../../telemetry/plain-text.ts'
import { hasMode } from '../shared/create-request.ts'
import { parseField } from '../shared/fields.ts'
import { fetchAs } from '../shared/socket-requests.ts'
import { connectEditor } from './editor-agent.ts'
import { socketStream } from './socket-stream.ts'

export type AcpDeps = {
  readonly manager: ConversationManager
  readonly profiles: () => Promise<Profiles>
  readonly metrics: Metrics
  readonly innerConnections: InnerConnections
  readonly version: string
}

/** `profile`: that of new sessions. */
type AcpService = AcpDeps & { readonly profile: string }

/** Resolves when the client has disconnected. Its agents work on. */
export async function serveAcp(socket: SocketConnection, request: FastifyRequest, deps: AcpService): Promise<void> {
  const access = accessOf(request)
  await using local = fetchAs(request, deps.innerConnections)
  const client = createClient({ baseUrl: local.baseUrl, fetch: local.fetch })
  const create = async (cwd: string | undefined, mcp: McpInput | undefined) => {
    try {
      const view = await createFor(deps, access, { cwd, mcp })
      logCommand(request, { frame: 'session/new', status: 201, conversation_id: view.id })
      return view
    } catch (error) {
      const problem = problemFor(error, request)
      throw AgentServerError.fromBody(problem.toBody(), { status: problem.status })
    }
  }
  const connection = connectEditor(socketStream(socket), {
    openHost: async () => ({ client, models: [], create, adopt: async (view) => view }),
    isLocal: false,
    usesEnvironment: false,
    version: deps.version,
    nameOf,
    warn: (text) => request.log.debug(text),
  })
  socket.signal.addEventListener('abort', () => connection.close(), { once: true })
  if (socket.signal.aborted) connection.close()
  await connection.closed
}

type Wish = { readonly cwd: string | undefined; readonly mcp: McpInput | undefined }

/** Calls that change something need a decision unless the profile has a mode. A limited key cannot choose a directory. */
async function createFor(deps: AcpService, access: Access, { cwd, mcp }: Wish): Promise<ConversationView> {
  access.require('write')
  const { profile } = deps
  const workdir = access.isLimited ? undefined : cwd
  const wish = parseField(CreateConversation, {
    profile,
    ...(workdir !== undefined && { workdir }),
    ...(mcp && { mcp }),
  })
  const mode = (await hasMode(deps, profile)) ? {} : { permission_mode: 'default' as const }
  const { view } = await createOrFind(deps.manager, access, { ...createAs(access, wish), ...mode })
  return view
}

const NAME_CHARS = 60

function nameOf({ title, preview = '' }: ConversationView): string {
  const name = oneLine((title ?? preview).trim())
  return name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1).toWellFormed()}…` : name || '(no message yet)'
}
