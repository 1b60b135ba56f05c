/** Registers all routes of the API. The OpenAPI document is generated from the same list. */
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { ApiKeys } from '../access/api-keys.ts'
import type { Tickets } from '../access/stream-tickets.ts'
import type { Info } from '../contract/server.ts'
import type { KnownModels } from '../conversations/known-models.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import type { Profiles } from '../conversations/profiles/profiles.ts'
import type { ConversationSearch } from '../conversations/search/search.ts'
import type { Firehose } from '../events/firehose.ts'
import type { PendingAuthorizations } from '../mcp/oauth/pending-authorizations.ts'
import type { Replays } from '../replays/replays.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { documentRoutes } from './docs.ts'
import type { Authorize } from './guards/authorize.ts'
import type { Peers } from './guards/forward-to-owner.ts'
import type { ReadinessProbe } from './readiness.ts'
import { agentConfigRoutes } from './routes/agent-config.ts'
import { attendanceRoutes } from './routes/attendance.ts'
import { clientHookRoutes } from './routes/client-hooks.ts'
import { callbackSecretRoutes } from './routes/callbacks/callback-secrets.ts'
import { callbackRoutes } from './routes/callbacks/callbacks.ts'
import { commandIoRoutes } from './routes/command-io.ts'
import { commandRoutes } from './routes/commands.ts'
import { confirmationRoutes } from './routes/confirmation.ts'
import { conversationListRoutes, conversationRoutes } from './routes/conversations.ts'
import { deliveryRoutes } from './routes/callbacks/deliveries.ts'
import { eventRoutes } from './routes/events.ts'
import { diffRoutes } from './routes/files/diffs.ts'
import { directoryRoutes } from './routes/files/directories.ts'
import { downloadRoutes } from './routes/files/downloads.ts'
import { fileBodyRoutes } from './routes/files/file-bodies.ts'
import { fileSearchRoutes } from './routes/files/file-search.ts'
import { fileRoutes } from './routes/files/files.ts'
import { gitRoutes } from './routes/files/git.ts'
import { forkRoutes } from './routes/forks.ts'
import { keyRoutes } from './routes/keys.ts'
import { loginRoutes } from './routes/logins.ts'
import { mcpOauthRoutes } from './routes/mcp/mcp-oauth.ts'
import { mcpRoutes } from './routes/mcp/mcp.ts'
import { compactionRoutes, messageRoutes, subagentRoutes, withdrawalRoutes } from './routes/messages.ts'
import { rewindRoutes } from './routes/rewind.ts'
import { permissionRuleRoutes } from './routes/permission-rules.ts'
import { permissionRoutes } from './routes/permissions.ts'
import { processRoutes } from './routes/processes.ts'
import { profileRoutes } from './routes/profiles.ts'
import { replayRoutes } from './routes/replays.ts'
import { requestRoutes } from './routes/requests.ts'
import { searchRoutes } from './routes/search.ts'
import { secretRoutes } from './routes/secrets.ts'
import { modelRoutes, serverRoutes } from './routes/server.ts'
import { shellSessionRoutes } from './routes/shell-sessions.ts'
import { eventStreamRoutes } from './routes/streams/event-stream.ts'
import { firehoseRoutes } from './routes/streams/firehose.ts'
import { socketRoutes } from './routes/streams/sockets.ts'
import { taskRoutes } from './routes/tasks.ts'
import { usageRoutes } from './routes/usage.ts'
import type { LoginSupport } from './guards/find-login.ts'
import type { RefuseKey } from './guards/require-key.ts'
import type { CheckKey, FirstFrameKey } from './guards/first-frame-key.ts'
import type { FirehoseSlots, StreamSlots } from './streams/stream-slots.ts'

export type RouteDeps = {
  readonly manager: ConversationManager
  readonly replays: Replays
  readonly search: Pick<ConversationSearch, 'page'>
  readonly pendingAuthorizations: PendingAuthorizations
  /** Undefined: no other instance has conversations. */
  readonly peers?: Peers | undefined
  readonly profiles: () => Promise<Profiles>
  readonly models: KnownModels
  readonly firehose: Firehose
  readonly info: Info
  readonly readiness: ReadinessProbe
  readonly metrics: Metrics
  readonly streamSlots: StreamSlots
  readonly firehoseSlots: FirehoseSlots
  /** Checks the permissions of the key, too. */
  readonly checkKey: CheckKey
  readonly firstFrameKey: FirstFrameKey
  readonly apiKeys: ApiKeys
  readonly refuseKey: RefuseKey
  readonly logins: LoginSupport
  readonly tickets: Tickets
  readonly authorize: Authorize
}

/** Registers the routes in the order of the API's documentation. */
export async function registerRoutes(app: FastifyInstance, deps: RouteDeps): Promise<void> {
  const { manager, firehose, info, metrics, streamSlots, firehoseSlots } = deps
  const { max_upload_bytes: maxUploadBytes, stream_buffer_bytes: streamBufferBytes } = info.limits
  // One scope for all: a plugin of Fastify for each router is a tenth of the time that they take to register.
  const routes = app.withTypeProvider<ZodTypeProvider>()
  await serverRoutes(routes, deps)
  await modelRoutes(routes, deps)
  await usageRoutes(routes, { manager })
  await documentRoutes(routes, {})
  await keyRoutes(routes, deps)
  await loginRoutes(routes, deps)
  await profileRoutes(routes, deps)
  await conversationRoutes(routes, { manager })
  await conversationListRoutes(routes, { manager })
  await attendanceRoutes(routes, { manager })
  await agentConfigRoutes(routes, { manager })
  await mcpRoutes(routes, { manager })
  await mcpOauthRoutes(routes, { manager, pending: deps.pendingAuthorizations, peers: deps.peers })
  await forkRoutes(routes, { manager })
  await messageRoutes(routes, { manager })
  await withdrawalRoutes(routes, { manager })
  await rewindRoutes(routes, { manager })
  await subagentRoutes(routes, { manager })
  await compactionRoutes(routes, { manager })
  await confirmationRoutes(routes, { manager })
  await permissionRoutes(routes, { manager })
  await permissionRuleRoutes(routes, { manager })
  await requestRoutes(routes, { manager })
  await clientHookRoutes(routes, { manager })
  await commandRoutes(routes, { manager })
  await commandIoRoutes(routes, { manager })
  await processRoutes(routes, { manager })
  await shellSessionRoutes(routes, { manager })
  await secretRoutes(routes, { manager })
  await directoryRoutes(routes, { manager })
  await downloadRoutes(routes, { manager })
  await fileRoutes(routes, { manager })
  await fileSearchRoutes(routes, { manager })
  await diffRoutes(routes, { manager })
  await gitRoutes(routes, { manager })
  // Its parser of multipart bodies is for its routes alone.
  await app.register(fileBodyRoutes, { manager, maxUploadBytes })
  await taskRoutes(routes, { manager })
  await replayRoutes(routes, deps)
  await eventRoutes(routes, { manager })
  await searchRoutes(routes, deps)
  await eventStreamRoutes(routes, { manager, metrics, streamSlots, streamBufferBytes })
  await callbackRoutes(routes, { manager })
  await callbackSecretRoutes(routes, { manager })
  await deliveryRoutes(routes, { manager })
  const streams = { firstFrameKey: deps.firstFrameKey, metrics, streamBufferBytes }
  await socketRoutes(routes, { manager, streamSlots, ...streams })
  await firehoseRoutes(routes, {
    firehose,
    ownerOf: (id) => manager.ownerOf(id),
    isHidden: (id) => manager.hidden.has(id),
    async readSummaries(ids) {
      await manager.upToDate()
      return await manager.pages.rows(ids)
    },
    slots: firehoseSlots,
    ...streams,
  })
}
