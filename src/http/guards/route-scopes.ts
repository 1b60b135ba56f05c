/**
 * Defines the scope that each route requires. The only file that does; a route that is missing here stops the server
 * from starting.
 */
import type { Scope } from '../../contract/key.ts'

const ROUTES = {
  read: [
    'GET /info',
    'GET /activity',
    'GET /models',
    'GET /profiles',
    'GET /usage',
    'GET /firehose',
    'GET /conversations',
    'GET /conversations/count',
    'GET /conversations/:id',
    'GET /conversations/:id/agent-info',
    'GET /conversations/:id/mcp',
    'GET /conversations/:id/events',
    'GET /conversations/:id/events/count',
    'GET /conversations/:id/events/stream',
    'GET /conversations/:id/events/:event_id',
    'GET /conversations/:id/events/:event_id/part',
    // Frames on a WebSocket require the scopes of the corresponding routes.
    'GET /conversations/:id/ws',
    'GET /conversations/summaries',
    'GET /requests',
    'GET /search',
    'GET /callbacks',
    'GET /conversations/:id/requests',
    'GET /conversations/:id/requests/:request_id',
    'GET /conversations/:id/permission-rules',
    'GET /conversations/:id/client-hooks',
    'GET /conversations/:id/tasks',
    'GET /conversations/:id/tasks/:task_id',
    'GET /conversations/:id/callbacks',
    'GET /conversations/:id/callbacks/:callback_id',
    'GET /conversations/:id/callbacks/:callback_id/deliveries',
    'GET /replays',
    'GET /replays/:replay_id',
    'POST /stream-tickets',
  ],
  write: [
    'POST /conversations',
    'GET /conversations/ws',
    'DELETE /conversations/:id',
    'PUT /conversations/:id/config',
    'POST /conversations/:id/mcp/:server_name/reconnect',
    'POST /conversations/:id/mcp/:server_name/authorize',
    'POST /conversations/:id/fork',
    'POST /conversations/:id/messages',
    'DELETE /conversations/:id/messages/:message_id',
    'DELETE /conversations/:id/subagents/:agent_id',
    'POST /conversations/:id/rewind',
    'POST /conversations/:id/run',
    'POST /conversations/:id/pause',
    'PUT /conversations/:id/attendance/:client_id',
    'DELETE /conversations/:id/attendance/:client_id',
    'POST /conversations/:id/compact',
    'POST /conversations/:id/events',
    'POST /conversations/:id/tasks',
    'DELETE /conversations/:id/tasks/:task_id',
    'POST /replays',
    'DELETE /replays/:replay_id',
    'POST /conversations/:id/callbacks',
    'PUT /conversations/:id/callbacks/:callback_id',
    'POST /conversations/:id/callbacks/:callback_id/rotate-secret',
    'DELETE /conversations/:id/callbacks/:callback_id',
    'POST /conversations/:id/callbacks/:callback_id/test',
    'POST /conversations/:id/callbacks/:callback_id/redeliver',
  ],
  approve: [
    'POST /conversations/:id/confirmation',
    'PUT /conversations/:id/permission-rules',
    'POST /conversations/:id/reject',
    'PUT /conversations/:id/client-hooks/:client',
    'DELETE /conversations/:id/client-hooks/:client',
  ],
  files: [
    'GET /conversations/:id/files',
    'GET /conversations/:id/files/*',
    'PUT /conversations/:id/files/*',
    'DELETE /conversations/:id/files/*',
    'POST /conversations/:id/files/upload',
    'GET /conversations/:id/file-info/*',
    'GET /conversations/:id/file-search',
    'GET /conversations/:id/file-count',
    'GET /conversations/:id/diff',
    'DELETE /conversations/:id/snapshots',
    'GET /conversations/:id/git/status',
    'GET /conversations/:id/git/diff',
    'GET /conversations/:id/git/file',
    'POST /conversations/:id/dirs/*',
  ],
  commands: [
    'POST /conversations/:id/commands',
    'GET /conversations/:id/commands',
    'GET /conversations/:id/commands/:command_id',
    'GET /conversations/:id/commands/:command_id/output',
    'POST /conversations/:id/commands/:command_id/input',
    'DELETE /conversations/:id/commands/:command_id',
    'GET /conversations/:id/processes',
    'DELETE /conversations/:id/processes',
    'DELETE /conversations/:id/processes/:pid',
    'GET /conversations/:id/shell-sessions',
    'DELETE /conversations/:id/shell-sessions/:session_id',
  ],
  secrets: [
    'PUT /conversations/:id/secrets',
    'GET /conversations/:id/secrets',
    'DELETE /conversations/:id/secrets/:key',
  ],
  admin: [
    'GET /metrics',
    'GET /profiles/:name',
    'PUT /profiles/:name',
    'DELETE /profiles/:name',
    'POST /keys',
    'GET /keys',
    'GET /keys/:key_id',
    'POST /keys/:key_id/rotate',
    'DELETE /keys/:key_id',
  ],
} as const satisfies Readonly<Record<Scope, readonly string[]>>

/** Routes that need `read` too: they send what the conversation says to the client, or to a receiver of its choice. */
const ALSO_READ: ReadonlySet<string> = new Set([
  'POST /conversations/:id/compact',
  'POST /conversations/:id/callbacks',
  'PUT /conversations/:id/callbacks/:callback_id',
  'POST /conversations/:id/callbacks/:callback_id/redeliver',
  'PUT /conversations/:id/client-hooks/:client',
])

/** Routes whose handler requires the scope, because it depends on what is sent. */
const BY_BODY = ['POST /conversations/:id/requests/:request_id'] as const

/** Routes that tell any key about itself, and about its logins. */
const ANY_KEY = ['GET /me', 'GET /logins', 'DELETE /logins/:login_id', 'POST /login-codes'] as const

const WITHOUT_SCOPE: ReadonlySet<string> = new Set([...BY_BODY, ...ANY_KEY])

/** Method and path, as they are registered. */
export type RouteName = (typeof ROUTES)[Scope][number] | (typeof BY_BODY)[number] | (typeof ANY_KEY)[number]

const SCOPES: ReadonlyMap<string, Scope> = new Map(
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of ROUTES
  Object.entries(ROUTES).flatMap(([scope, routes]) => routes.map((route) => [route, scope as Scope])),
)

/** Returns the scopes that a key needs; undefined for a route that is not in the tables. HEAD requires the same as GET. */
export function scopesOf(method: string, url: string): readonly Scope[] | undefined {
  const route = `${method === 'HEAD' ? 'GET' : method} ${url}`
  return isRoute(route) ? scopesOfRoute(route) : undefined
}

export function scopesOfRoute(route: RouteName): readonly Scope[] {
  const scope = SCOPES.get(route)
  if (scope === undefined) return []
  return ALSO_READ.has(route) ? [scope, 'read'] : [scope]
}

const isRoute = (route: string): route is RouteName => SCOPES.has(route) || WITHOUT_SCOPE.has(route)

/** Returns every route of the tables, for a test that each exists. */
export const scopedRoutes = (): Iterable<string> => [...SCOPES.keys(), ...WITHOUT_SCOPE]
