/** Registers all routes of the API. The OpenAPI document is generated from the same list. */
import type { FastifyInstance } from 'fastify'
import type { ApiKeys } from '../access/api-keys.ts'
import type { StreamTickets } from '../access/stream-tickets.ts'
import type { Info } from '../contract/server.ts'
import type { KnownModels } from '../conversations/known-models.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import type { Firehose } from '../events/firehose.ts'
import type { PendingAuthorizations } from '../mcp/oauth/pending-authorizations.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { documentRoutes } from './docs.ts'
import type { Authorize } from './guards/authorize.ts'
import type { ReadinessProbe } from './readiness.ts'
import { agentConfigRoutes } from './routes/agent-config.ts'
import { attendanceRoutes } from './routes/attendance.ts'
import { clientHookRoutes } from './routes/client-hooks.ts'
import { callbackSecretRoutes } from './routes/callbacks/callback-secrets.ts'
import { callbackRoutes } from './routes/callbacks/callbacks.ts'
import { commandIoRoutes } from './routes/command-io.ts'
import { commandRoutes } from './routes/commands.ts'
import { confirmationRoutes } from './routes/confirmation.ts'
import { conversationRoutes } from './routes/conversations.ts'
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
import { modelRoutes } from './routes/models.ts'
import { mcpOauthRoutes } from './routes/mcp/mcp-oauth.ts'
import { mcpRoutes } from './routes/mcp/mcp.ts'
import { compactionRoutes, messageRoutes, subagentRoutes, withdrawalRoutes } from './routes/messages.ts'
import { rewindRoutes } from './routes/rewind.ts'
import { permissionRuleRoutes } from './routes/permission-rules.ts'
import { permissionRoutes } from './routes/permissions.ts'
import { processRoutes } from './routes/processes.ts'
import { requestRoutes } from './routes/requests.ts'
import { secretRoutes } from './routes/secrets.ts'
import { serverRoutes } from './routes/server.ts'
import { shellSessionRoutes } from './routes/shell-sessions.ts'
import { eventStreamRoutes } from './routes/streams/event-stream.ts'
import { firehoseRoutes } from './routes/streams/firehose.ts'
import { socketRoutes } from './routes/streams/sockets.ts'
import { taskRoutes } from './routes/tasks.ts'
import type { CheckKey } from './guards/first-frame-key.ts'
import { createFirstFrameKey } from './guards/first-frame-key.ts'
import type { FirehoseSlots, StreamSlots } from './streams/stream-slots.ts'

export type RouteDeps = {
  readonly manager: ConversationManager
  readonly pendingAuthorizations: PendingAuthorizations
  readonly models: KnownModels
  readonly firehose: Firehose
  readonly info: Info
  readonly readiness: ReadinessProbe
  readonly metrics: Metrics
  readonly streamSlots: StreamSlots
  readonly firehoseSlots: FirehoseSlots
  /** Also checks the permissions of the key. */
  readonly checkKey: CheckKey
  readonly apiKeys: ApiKeys
  readonly tickets: StreamTickets
  readonly authorize: Authorize
}

/** In the order of the API's documentation. */
export async function registerRoutes(app: FastifyInstance, deps: RouteDeps): Promise<void> {
  const { manager, firehose, info, readiness, metrics, streamSlots, firehoseSlots } = deps
  const { max_upload_bytes: maxUploadBytes, stream_buffer_bytes: streamBufferBytes } = info.limits
  await app.register(serverRoutes, { info, readiness, metrics })
  await app.register(modelRoutes, deps)
  await app.register(documentRoutes)
  await app.register(keyRoutes, deps)
  await app.register(conversationRoutes, { manager })
  await app.register(attendanceRoutes, { manager })
  await app.register(agentConfigRoutes, { manager })
  await app.register(mcpRoutes, { manager })
  await app.register(mcpOauthRoutes, { manager, pending: deps.pendingAuthorizations })
  await app.register(forkRoutes, { manager })
  await app.register(messageRoutes, { manager })
  await app.register(withdrawalRoutes, { manager })
  await app.register(rewindRoutes, { manager })
  await app.register(subagentRoutes, { manager })
  await app.register(compactionRoutes, { manager })
  await app.register(confirmationRoutes, { manager })
  await app.register(permissionRoutes, { manager })
  await app.register(permissionRuleRoutes, { manager })
  await app.register(requestRoutes, { manager })
  await app.register(clientHookRoutes, { manager })
  await app.register(commandRoutes, { manager })
  await app.register(commandIoRoutes, { manager })
  await app.register(processRoutes, { manager })
  await app.register(shellSessionRoutes, { manager })
  await app.register(secretRoutes, { manager })
  await app.register(directoryRoutes, { manager })
  await app.register(downloadRoutes, { manager })
  await app.register(fileRoutes, { manager })
  await app.register(fileSearchRoutes, { manager })
  await app.register(diffRoutes, { manager })
  await app.register(gitRoutes, { manager })
  await app.register(fileBodyRoutes, { manager, maxUploadBytes })
  await app.register(taskRoutes, { manager })
  await app.register(eventRoutes, { manager })
  await app.register(eventStreamRoutes, { manager, metrics, streamSlots, streamBufferBytes })
  await app.register(callbackRoutes, { manager })
  await app.register(callbackSecretRoutes, { manager })
  await app.register(deliveryRoutes, { manager })
  const streams = { firstFrameKey: createFirstFrameKey(deps.checkKey), metrics, streamBufferBytes }
  await app.register(socketRoutes, { manager, streamSlots, ...streams })
  await app.register(firehoseRoutes, {
    firehose,
    ownerOf: (id) => manager.ownerOf(id),
    slots: firehoseSlots,
    ...streams,
  })
}
