/**
 * What a key that is limited to profiles may send to each route that changes something. The only file that says so: a route that
 * is missing here does not compile, and stops the server from starting. Which conversations such a key sees is not decided here.
 */
import type { Access } from '../../access/access.ts'
import type { CompactRequest } from '../../contract/compaction/request.ts'
import type { CreateConversation, ForkConversation, UpdateConfig } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { AnswerRequest } from '../../contract/request.ts'
import type { RewindRequest } from '../../contract/rewind.ts'
import type { PauseRequest, PostMessage, RunOptions, RunRequest } from '../../contract/run.ts'
import type { PostTask } from '../../contract/values/task.ts'
import type { RouteName } from './route-scopes.ts'

/**
 * `free`: nothing of the request gives rights, beyond what the scopes of the key say. `only`: the fields that it may send, of which
 * none gives rights. `cannot`: what is refused, always, or if the body asks for it.
 */
export type ProfileLimit =
  | 'free'
  | { readonly only: Readonly<Record<string, true>> }
  | { readonly cannot: string; readonly if?: (body: never) => boolean }

/** None of its fields gives rights. */
type Harmless = { readonly harmless: object }

type SomeOf<T extends object> = Partial<AllOf<T>>

/** All fields of a request: a new one does not compile until it is named. */
type AllOf<T extends object> = Readonly<Record<keyof T & string, true>>

/** Routes that read, apart from the WebSockets, which send what other routes get. */
type Reading = Exclude<RouteName & `GET ${string}`, 'GET /conversations/ws' | 'GET /conversations/:id/ws'>

const HARMLESS_RUN_OPTIONS = {
  max_steps: true,
  output_schema: true,
  tool_choice: true,
  temperature: true,
  max_output_tokens: true,
  reasoning_effort: true,
} satisfies SomeOf<RunOptions>

const LIMITS: Readonly<Record<Exclude<RouteName, Reading>, ProfileLimit | Harmless>> = {
  'POST /conversations': {
    only: {
      profile: true,
      initial_message: true,
      title: true,
      labels: true,
      metadata: true,
      external_id: true,
      client_tools: true,
      run: true,
      wait: true,
      timeout: true,
    } satisfies SomeOf<CreateConversation>,
  },
  // Its frames are limited as the routes that they are equivalent to.
  'GET /conversations/ws': 'free',
  'GET /conversations/:id/ws': 'free',
  'DELETE /conversations/:id': 'free',
  'PUT /conversations/:id/config': {
    only: {
      title: true,
      labels: true,
      archived: true,
      metadata: true,
      client_tools: true,
      after_seq: true,
    } satisfies SomeOf<UpdateConfig>,
  },
  'POST /conversations/:id/mcp/:server_name/reconnect': 'free',
  // The account that its user signs in to.
  'POST /conversations/:id/mcp/:server_name/authorize': 'free',
  'POST /conversations/:id/fork': {
    only: { at_seq: true, workdir: true, title: true, id: true, run: true } satisfies SomeOf<ForkConversation>,
  },
  'POST /conversations/:id/messages': {
    cannot: 'choose what a run may do. Leave model, permission_mode, allowed_tools and instructions out of run_options',
    if: choosesRights,
  },
  'DELETE /conversations/:id/messages/:message_id': 'free',
  'DELETE /conversations/:id/subagents/:agent_id': 'free',
  'POST /conversations/:id/rewind': {
    harmless: {
      to_seq: true,
      last_seq: true,
      conversation: true,
      files: true,
      force: true,
      end_processes: true,
    } satisfies AllOf<RewindRequest>,
  },
  'POST /conversations/:id/run': {
    only: {
      ...HARMLESS_RUN_OPTIONS,
      after_seq: true,
      wait: true,
      timeout: true,
    } satisfies SomeOf<RunRequest>,
  },
  'POST /conversations/:id/pause': { harmless: { interrupt: true } satisfies AllOf<PauseRequest> },
  'PUT /conversations/:id/attendance/:client_id': 'free',
  'DELETE /conversations/:id/attendance/:client_id': 'free',
  'POST /conversations/:id/compact': { harmless: { instructions: true } satisfies AllOf<CompactRequest> },
  'POST /conversations/:id/events': 'free',
  'POST /conversations/:id/tasks': {
    harmless: { title: true, runnable: true, after_seq: true } satisfies AllOf<PostTask>,
  },
  'DELETE /conversations/:id/tasks/:task_id': 'free',
  // The forks of a replay are in no list, and work with other rights.
  'POST /replays': { cannot: 'make replays' },
  'DELETE /replays/:replay_id': { cannot: 'end replays' },
  // They get what the key may read.
  'POST /conversations/:id/callbacks': 'free',
  'PUT /conversations/:id/callbacks/:callback_id': 'free',
  'POST /conversations/:id/callbacks/:callback_id/rotate-secret': 'free',
  'DELETE /conversations/:id/callbacks/:callback_id': 'free',
  'POST /conversations/:id/callbacks/:callback_id/test': 'free',
  'POST /conversations/:id/callbacks/:callback_id/redeliver': 'free',
  'POST /stream-tickets': 'free',
  'POST /conversations/:id/confirmation': { cannot: 'change what is confirmed' },
  'PUT /conversations/:id/permission-rules': { cannot: 'replace rules' },
  'POST /conversations/:id/reject': 'free',
  // What a client hook answers can allow calls.
  'PUT /conversations/:id/client-hooks/:client': { cannot: 'have hooks' },
  'DELETE /conversations/:id/client-hooks/:client': { cannot: 'remove hooks' },
  // An answer that is remembered is a rule.
  'POST /conversations/:id/requests/:request_id': { cannot: 'add rules. Leave out remember', if: isRemembered },
  'PUT /conversations/:id/files/*': 'free',
  'DELETE /conversations/:id/files/*': 'free',
  'POST /conversations/:id/files/upload': 'free',
  'DELETE /conversations/:id/snapshots': 'free',
  'POST /conversations/:id/dirs/*': 'free',
  'POST /conversations/:id/commands': 'free',
  'POST /conversations/:id/commands/:command_id/input': 'free',
  'DELETE /conversations/:id/commands/:command_id': 'free',
  'DELETE /conversations/:id/processes': 'free',
  'DELETE /conversations/:id/processes/:pid': 'free',
  'DELETE /conversations/:id/shell-sessions/:session_id': 'free',
  'PUT /conversations/:id/secrets': { cannot: 'store secrets' },
  'DELETE /conversations/:id/secrets/:key': { cannot: 'delete secrets' },
  'PUT /profiles/:name': { cannot: 'change profiles' },
  'DELETE /profiles/:name': { cannot: 'delete profiles' },
  'POST /keys': { cannot: 'create keys' },
  'POST /keys/:key_id/rotate': { cannot: 'rotate keys' },
  'DELETE /keys/:key_id': { cannot: 'revoke keys' },
  // Those of the key itself, with its limits.
  'DELETE /logins/:login_id': 'free',
  'POST /login-codes': 'free',
}

function choosesRights({ run_options: options }: PostMessage): boolean {
  return Object.keys(options ?? {}).some((name) => !Object.hasOwn(HARMLESS_RUN_OPTIONS, name))
}

function isRemembered(answer: AnswerRequest): boolean {
  if ('decisions' in answer) return answer.decisions.some(({ remember }) => remember)
  return 'remember' in answer && answer.remember
}

const isHarmless = (limit: ProfileLimit | Harmless): limit is Harmless => limit !== 'free' && 'harmless' in limit

/** Undefined for a route that changes something and is in no table. HEAD is as GET. */
export function profileLimitOf(method: string, url: string): ProfileLimit | undefined {
  const limit = (LIMITS as Readonly<Record<string, ProfileLimit | Harmless>>)[`${method} ${url}`]
  if (limit && isHarmless(limit)) return 'free'
  return limit ?? (method === 'GET' || method === 'HEAD' ? 'free' : undefined)
}

/** Throws `forbidden` for a key that is limited to profiles, and names what it has to leave out. */
export function limitToProfiles(access: Access, limit: ProfileLimit | undefined, body: unknown): void {
  if (!access.limits.profiles || limit === 'free') return
  if (limit === undefined) throw new Problem('forbidden', 'This key is limited to profiles and cannot do this.')
  if ('only' in limit) return refuseBesides(limit.only, body)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of the route has parsed it
  if (limit.if && !limit.if(body as never)) return
  throw new Problem('forbidden', `This key is limited to profiles and cannot ${limit.cannot}.`)
}

/** Limits as `limitToProfiles` what is equivalent to a request of this route. */
export function limitAs(access: Access, route: keyof typeof LIMITS, body: unknown): void {
  const limit = LIMITS[route]
  if (!isHarmless(limit)) limitToProfiles(access, limit, body)
}

function refuseBesides(allowedNames: Readonly<Record<string, true>>, body: unknown): void {
  const refusedFields = Object.entries(body ?? {}).filter(
    ([name, value]) => value !== undefined && !Object.hasOwn(allowedNames, name),
  )
  if (refusedFields.length === 0) return
  const names = refusedFields.map(([name]) => name).join(', ')
  throw new Problem('forbidden', `This key is limited to profiles, which say everything else. Leave out ${names}.`)
}
