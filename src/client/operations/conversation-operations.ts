/** The operations of one conversation: its configuration, its runs, its events and what waits for a user. */
import type { AgentInfo } from '../../contract/agent-info.ts'
import type { PendingToolCalls, PostToolResult, ToolResultAccepted } from '../../contract/client-tools/client-tool.ts'
import type { Compacted, CompactRequest } from '../../contract/compaction/request.ts'
import type { ConversationView, ForkConversation, UpdateConfig } from '../../contract/conversation.ts'
import type { Event } from '../../contract/events/event.ts'
import type {
  CountEvents,
  EventPage,
  ListEvents,
  PostClientEvent,
  PostedClientEvent,
  StreamEvents,
} from '../../contract/events/events-api.ts'
import type { AnswerQuestion, PendingQuestions, QuestionAnswered } from '../../contract/events/questions.ts'
import type {
  ClientHooksList,
  ClientHooksView,
  HookAnswerAccepted,
  HookRequests,
  ListHookRequests,
  PostHookAnswer,
  PutClientHooks,
} from '../../contract/hooks/client-hooks.ts'
import type { AuthorizeMcpServer } from '../../contract/mcp/mcp-oauth.ts'
import type { McpServerList, McpServerView } from '../../contract/mcp/mcp-status.ts'
import type { DecideNetworkRequest, NetworkDecisionAnswer, PendingNetworkRequests } from '../../contract/network.ts'
import type { Count } from '../../contract/page.ts'
import type {
  ApproveRequest,
  DecidePermission,
  PendingPermissions,
  PermissionAnswer,
  PermissionRulesView,
  RejectRequest,
  SetConfirmation,
} from '../../contract/permission.ts'
import type {
  PauseRequest,
  PostedMessage,
  PostMessage,
  RunOutcome,
  RunRequest,
  StatusAnswer,
} from '../../contract/run.ts'
import { get, post, postOnce, put, remove } from './operation.ts'

export const CONVERSATION_OPERATIONS = {
  getConversation: get('/conversations/{id}').returns<typeof ConversationView>(),
  deleteConversation: remove('/conversations/{id}'),
  getAgentInfo: get('/conversations/{id}/agent-info').returns<typeof AgentInfo>(),
  updateConfig: put('/conversations/{id}/config').sends<typeof UpdateConfig>().returns<typeof ConversationView>(),
  forkConversation: postOnce('/conversations/{id}/fork')
    .sends<typeof ForkConversation>()
    .returns<typeof ConversationView>(),

  postMessage: postOnce('/conversations/{id}/messages').sends<typeof PostMessage>().returns<typeof PostedMessage>(),
  /** Returns `RunOutcome` with `wait`, otherwise `RunStarted`. */
  runConversation: post('/conversations/{id}/run').sends<typeof RunRequest>().returns<typeof RunOutcome>(),
  pauseConversation: post('/conversations/{id}/pause').sends<typeof PauseRequest>().returns<typeof StatusAnswer>(),
  compactConversation: post('/conversations/{id}/compact').sends<typeof CompactRequest>().returns<typeof Compacted>(),

  listEvents: get('/conversations/{id}/events').filters<typeof ListEvents>().returns<typeof EventPage>(),
  countEvents: get('/conversations/{id}/events/count').filters<typeof CountEvents>().returns<typeof Count>(),
  getEvent: get('/conversations/{id}/events/{event_id}').returns<typeof Event>(),
  postEvent: postOnce('/conversations/{id}/events').sends<typeof PostClientEvent>().returns<typeof PostedClientEvent>(),
  streamEvents: get('/conversations/{id}/events/stream').filters<typeof StreamEvents>(),

  setConfirmation: post('/conversations/{id}/confirmation')
    .sends<typeof SetConfirmation>()
    .returns<typeof ConversationView>(),
  listPermissions: get('/conversations/{id}/permissions').returns<typeof PendingPermissions>(),
  decidePermission: post('/conversations/{id}/permissions/{request_id}')
    .sends<typeof DecidePermission>()
    .returns<typeof PermissionAnswer>(),
  approve: post('/conversations/{id}/approve').sends<typeof ApproveRequest>().returns<typeof PermissionAnswer>(),
  reject: post('/conversations/{id}/reject').sends<typeof RejectRequest>().returns<typeof PermissionAnswer>(),
  listPermissionRules: get('/conversations/{id}/permission-rules').returns<typeof PermissionRulesView>(),
  replacePermissionRules: put('/conversations/{id}/permission-rules')
    .sends<typeof PermissionRulesView>()
    .returns<typeof PermissionRulesView>(),

  listQuestions: get('/conversations/{id}/questions').returns<typeof PendingQuestions>(),
  answerQuestion: post('/conversations/{id}/questions/{question_id}')
    .sends<typeof AnswerQuestion>()
    .returns<typeof QuestionAnswered>(),

  listToolCalls: get('/conversations/{id}/tool-calls').returns<typeof PendingToolCalls>(),
  postToolResult: post('/conversations/{id}/tool-results/{tool_use_id}')
    .sends<typeof PostToolResult>()
    .returns<typeof ToolResultAccepted>(),

  listClientHooks: get('/conversations/{id}/client-hooks').returns<typeof ClientHooksList>(),
  putClientHooks: put('/conversations/{id}/client-hooks/{client}')
    .sends<typeof PutClientHooks>()
    .returns<typeof ClientHooksView>(),
  deleteClientHooks: remove('/conversations/{id}/client-hooks/{client}'),
  listHookRequests: get('/conversations/{id}/hook-requests')
    .filters<typeof ListHookRequests>()
    .returns<typeof HookRequests>(),
  answerHook: post('/conversations/{id}/hook-requests/{request_id}')
    .sends<typeof PostHookAnswer>()
    .returns<typeof HookAnswerAccepted>(),

  listNetworkRequests: get('/conversations/{id}/network-requests').returns<typeof PendingNetworkRequests>(),
  decideNetworkRequest: post('/conversations/{id}/network-requests/{request_id}')
    .sends<typeof DecideNetworkRequest>()
    .returns<typeof NetworkDecisionAnswer>(),

  listMcpServers: get('/conversations/{id}/mcp').returns<typeof McpServerList>(),
  authorizeMcpServer: post('/conversations/{id}/mcp/{server_name}/authorize')
    .sends<typeof AuthorizeMcpServer>()
    .returns<typeof McpServerView>(),
  reconnectMcpServer: post('/conversations/{id}/mcp/{server_name}/reconnect').returns<typeof McpServerView>(),
}
