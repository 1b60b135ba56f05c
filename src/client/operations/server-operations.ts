/** The operations of the server itself: its state, its description, its keys and the list of conversations. */
import type {
  ConversationCount,
  ConversationPage,
  ConversationView,
  CountConversations,
  CreateConversation,
  ListConversations,
} from '../../contract/conversation.ts'
import type {
  ApiKey,
  ApiKeyList,
  CreateKey,
  CreatedKey,
  CreateStreamTicket,
  Me,
  RotateKey,
  StreamTicket,
} from '../../contract/key.ts'
import type { CreatedLogin, CreateLogin, LoginCode, LoginList } from '../../contract/login.ts'
import type { ListModels, ModelPage } from '../../contract/models.ts'
import type { ConversationSummaries } from '../../contract/conversations/summary.ts'
import type { Alive, Info, Readiness, ServerActivity } from '../../contract/server.ts'
import type { StreamFirehose } from '../../contract/events-api.ts'
import type { ListAllRequests, WaitingRequests } from '../../contract/request.ts'
import type { CreateReplay, ListReplays, Replay, ReplayPage } from '../../contract/replay.ts'
import type { Profile, ProfileList, PutProfile } from '../../contract/profile.ts'
import type { GetUsage, UsageReport } from '../../contract/usage.ts'
import type { FoundEvents, SearchEvents } from '../../contract/search.ts'
import type { CallbackStates, ListAllCallbacks } from '../../contract/callback.ts'
import { get, post, postOnce, put, remove } from './operation.ts'

export const SERVER_OPERATIONS = {
  alive: get('/alive').returns<typeof Alive>(),
  ready: get('/ready').returns<typeof Readiness>(),
  info: get('/info').returns<typeof Info>(),
  activity: get('/activity').returns<typeof ServerActivity>(),
  listModels: get('/models').filters<typeof ListModels>().returns<typeof ModelPage>(),
  getUsage: get('/usage').filters<typeof GetUsage>().returns<typeof UsageReport>(),
  metrics: get('/metrics'),
  openapi: get('/openapi.json'),
  asyncapi: get('/asyncapi.json'),

  me: get('/me').returns<typeof Me>(),
  createKey: post('/keys').sends<typeof CreateKey>().returns<typeof CreatedKey>(),
  listKeys: get('/keys').returns<typeof ApiKeyList>(),
  getKey: get('/keys/{key_id}').returns<typeof ApiKey>(),
  deleteKey: remove('/keys/{key_id}'),
  rotateKey: post('/keys/{key_id}/rotate').sends<typeof RotateKey>().returns<typeof CreatedKey>(),
  createLogin: post('/logins').sends<typeof CreateLogin>().returns<typeof CreatedLogin>(),
  listLogins: get('/logins').returns<typeof LoginList>(),
  deleteLogin: remove('/logins/{login_id}'),
  createLoginCode: post('/login-codes').returns<typeof LoginCode>(),
  createStreamTicket: post('/stream-tickets').sends<typeof CreateStreamTicket>().returns<typeof StreamTicket>(),

  listProfiles: get('/profiles').returns<typeof ProfileList>(),
  getProfile: get('/profiles/{name}').returns<typeof Profile>(),
  putProfile: put('/profiles/{name}').sends<typeof PutProfile>().returns<typeof Profile>(),
  deleteProfile: remove('/profiles/{name}'),

  createConversation: postOnce('/conversations').sends<typeof CreateConversation>().returns<typeof ConversationView>(),
  listAllRequests: get('/requests').filters<typeof ListAllRequests>().returns<typeof WaitingRequests>(),
  listAllCallbacks: get('/callbacks').filters<typeof ListAllCallbacks>().returns<typeof CallbackStates>(),
  listConversations: get('/conversations').filters<typeof ListConversations>().returns<typeof ConversationPage>(),
  listConversationSummaries: get('/conversations/summaries')
    .filters<typeof ListConversations>()
    .returns<typeof ConversationSummaries>(),
  countConversations: get('/conversations/count')
    .filters<typeof CountConversations>()
    .returns<typeof ConversationCount>(),

  searchEvents: get('/search').filters<typeof SearchEvents>().returns<typeof FoundEvents>(),
  createReplay: postOnce('/replays').sends<typeof CreateReplay>().returns<typeof Replay>(),
  listReplays: get('/replays').filters<typeof ListReplays>().returns<typeof ReplayPage>(),
  getReplay: get('/replays/{replay_id}').returns<typeof Replay>(),
  cancelReplay: remove('/replays/{replay_id}').returns<typeof Replay>(),

  streamFirehose: get('/firehose').filters<typeof StreamFirehose>(),
}
