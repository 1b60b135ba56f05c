/** The operations of one conversation: its configuration, its runs, its events and what waits for a user. */
import type { AgentInfo } from '../../contract/agent-info.ts'
import type { Compacted, CompactRequest } from '../../contract/compaction/request.ts'
import type { ConversationView, ForkConversation, UpdateConfig } from '../../contract/conversation.ts'
import type { Event } from '../../contract/events/event.ts'
import type {
  CountEvents,
  EventPage,
  GetEventPart,
  ListEvents,
  PostClientEvent,
  PostedClientEvent,
  StreamEvents,
} from '../../contract/events-api.ts'
import type { ClientHooksList, ClientHooksView, PutClientHooks } from '../../contract/hooks/client-hooks.ts'
import type { AuthorizeMcpServer } from '../../contract/mcp/mcp-oauth.ts'
import type { McpServerList, McpServerView } from '../../contract/mcp/mcp-status.ts'
import type { Count } from '../../contract/values/page.ts'
import type { PermissionRulesView, RejectRequest, SetConfirmation } from '../../contract/values/permission.ts'
import type {
  AnswerRequest,
  ListOpenRequests,
  OpenRequest,
  OpenRequests,
  RequestAccepted,
  ShowRequest,
} from '../../contract/request.ts'
import type {
  PauseRequest,
  PostedMessage,
  PostMessage,
  RunOutcome,
  RunRequest,
  StatusAnswer,
  StoppedSubagent,
  WithdrawnMessage,
} from '../../contract/run.ts'
import type { RewindOutcome, RewindQuery, RewindRequest } from '../../contract/rewind.ts'
import { get, post, postOnce, put, remove } from './operation.ts'

export const CONVERSATION_OPERATIONS = {
  getConversation: get('/conversations/{id}').returns<typeof ConversationView>(),
  deleteConversation: remove('/conversations/{id}'),
  announceAttendance: put('/conversations/{id}/attendance/{client_id}'),
  endAttendance: remove('/conversations/{id}/attendance/{client_id}'),
  getAgentInfo: get('/conversations/{id}/agent-info').returns<typeof AgentInfo>(),
  updateConfig: put('/conversations/{id}/config').sends<typeof UpdateConfig>().returns<typeof ConversationView>(),
  forkConversation: postOnce('/conversations/{id}/fork')
    .sends<typeof ForkConversation>()
    .returns<typeof ConversationView>(),

  postMessage: postOnce('/conversations/{id}/messages').sends<typeof PostMessage>().returns<typeof PostedMessage>(),
  rewindConversation: postOnce('/conversations/{id}/rewind')
    .filters<typeof RewindQuery>()
    .sends<typeof RewindRequest>()
    .returns<typeof RewindOutcome>(),
  withdrawMessage: remove('/conversations/{id}/messages/{message_id}').returns<typeof WithdrawnMessage>(),
  stopSubagent: remove('/conversations/{id}/subagents/{agent_id}').returns<typeof StoppedSubagent>(),
  /** Returns `RunOutcome` with `wait`, otherwise `RunStarted`. */
  runConversation: post('/conversations/{id}/run').sends<typeof RunRequest>().returns<typeof RunOutcome>(),
  pauseConversation: post('/conversations/{id}/pause').sends<typeof PauseRequest>().returns<typeof StatusAnswer>(),
  compactConversation: post('/conversations/{id}/compact').sends<typeof CompactRequest>().returns<typeof Compacted>(),

  listEvents: get('/conversations/{id}/events').filters<typeof ListEvents>().returns<typeof EventPage>(),
  countEvents: get('/conversations/{id}/events/count').filters<typeof CountEvents>().returns<typeof Count>(),
  getEvent: get('/conversations/{id}/events/{event_id}').returns<typeof Event>(),
  getEventPart: get('/conversations/{id}/events/{event_id}/part').filters<typeof GetEventPart>(),
  postEvent: postOnce('/conversations/{id}/events').sends<typeof PostClientEvent>().returns<typeof PostedClientEvent>(),
  streamEvents: get('/conversations/{id}/events/stream').filters<typeof StreamEvents>(),

  setConfirmation: post('/conversations/{id}/confirmation')
    .sends<typeof SetConfirmation>()
    .returns<typeof ConversationView>(),
  reject: post('/conversations/{id}/reject').sends<typeof RejectRequest>().returns<typeof RequestAccepted>(),
  listPermissionRules: get('/conversations/{id}/permission-rules').returns<typeof PermissionRulesView>(),
  replacePermissionRules: put('/conversations/{id}/permission-rules')
    .sends<typeof PermissionRulesView>()
    .returns<typeof PermissionRulesView>(),

  listRequests: get('/conversations/{id}/requests').filters<typeof ListOpenRequests>().returns<typeof OpenRequests>(),
  getRequest: get('/conversations/{id}/requests/{request_id}')
    .filters<typeof ShowRequest>()
    .returns<typeof OpenRequest>(),
  answerRequest: post('/conversations/{id}/requests/{request_id}')
    .sends<typeof AnswerRequest>()
    .returns<typeof RequestAccepted>(),

  listClientHooks: get('/conversations/{id}/client-hooks').returns<typeof ClientHooksList>(),
  putClientHooks: put('/conversations/{id}/client-hooks/{client}')
    .sends<typeof PutClientHooks>()
    .returns<typeof ClientHooksView>(),
  deleteClientHooks: remove('/conversations/{id}/client-hooks/{client}'),

  listMcpServers: get('/conversations/{id}/mcp').returns<typeof McpServerList>(),
  authorizeMcpServer: post('/conversations/{id}/mcp/{server_name}/authorize')
    .sends<typeof AuthorizeMcpServer>()
    .returns<typeof McpServerView>(),
  reconnectMcpServer: post('/conversations/{id}/mcp/{server_name}/reconnect').returns<typeof McpServerView>(),
}
