/**
 * The error catalogue: every code that a client can receive, its HTTP status, and how an error is thrown and returned.
 */
import { namesInToolConfig } from './limits/tool-config.ts'
import { z } from 'zod'
import { nearestName } from './nearest-name.ts'
import { HOOK_POINTS } from './hooks/hook-point.ts'

/** Code -> HTTP status. A code is never renamed; its message says what to do. */
export const PROBLEMS = {
  invalid_request: 400,
  invalid_cursor: 400,
  unsupported_frame: 400,
  unsafe_path: 400,
  token_in_url: 400,
  callback_address_refused: 400,
  llm_endpoint_refused: 400,
  unauthorized: 401,
  forbidden: 403,
  origin_refused: 403,
  insecure_login: 403,
  file_forbidden: 403,
  denied_by_rule: 403,
  blocked_by_hook: 403,
  network_not_permitted: 403,
  not_found: 404,
  conversation_not_found: 404,
  key_not_found: 404,
  login_not_found: 404,
  profile_not_found: 404,
  event_not_found: 404,
  message_not_found: 404,
  snapshot_not_found: 404,
  request_not_found: 404,
  client_hooks_not_found: 404,
  file_not_found: 404,
  revision_not_found: 404,
  command_not_found: 404,
  session_not_found: 404,
  process_not_found: 404,
  task_not_found: 404,
  replay_not_found: 404,
  search_off: 404,
  subagent_not_found: 404,
  callback_not_found: 404,
  mcp_server_not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  conversation_exists: 409,
  message_exists: 409,
  mcp_authorization_failed: 409,
  already_running: 409,
  already_continued: 409,
  conversation_changed: 409,
  files_changed: 409,
  workdir_in_use: 409,
  unknown_cost: 409,
  waiting_for_confirmation: 409,
  waiting_for_input: 409,
  waiting_for_client: 409,
  idempotency_in_flight: 409,
  nothing_pending: 409,
  nothing_to_compact: 409,
  input_changed: 409,
  already_answered: 409,
  already_read: 409,
  request_closed: 409,
  cursor_ahead: 409,
  conversation_running: 409,
  network_mode_unavailable: 409,
  session_busy: 409,
  input_closed: 409,
  outcome_unknown: 409,
  conversation_damaged: 409,
  conversation_from_newer_version: 409,
  workdir_missing: 409,
  git_unavailable: 409,
  git_failed: 409,
  not_a_repository: 409,
  not_a_file: 409,
  not_a_directory: 409,
  directory_not_empty: 409,
  conversation_deleted: 410,
  precondition_failed: 412,
  body_too_large: 413,
  workdir_too_large: 413,
  idempotency_mismatch: 422,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  expectation_failed: 417,
  limit_reached: 429,
  upgrade_required: 426,
  too_many_attempts: 429,
  too_many_streams: 429,
  headers_too_large: 431,
  internal: 500,
  model_failed: 502,
  storage_failed: 500,
  disk_quota_exceeded: 507,
  storage_full: 507,
  unavailable: 503,
  storage_unavailable: 503,
  owner_lost: 503,
} as const

export type ProblemCode = keyof typeof PROBLEMS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const PROBLEM_CODES = Object.keys(PROBLEMS) as ProblemCode[]

/** The body of every error response. `error` is a code of the catalogue; a request's body is never echoed. */
export const ErrorBody = z
  .object({
    error: z.enum(PROBLEM_CODES).meta({ id: 'ErrorCode' }),
    message: z.string().describe('What happened, and what to do.'),
    details: z.record(z.string(), z.unknown()).optional().describe('Machine-readable details, depending on the code.'),
  })
  .meta({
    id: 'ErrorBody',
  })
export type ErrorBody = z.infer<typeof ErrorBody>

/** An expected failure that is returned to a client. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly details: Record<string, unknown> | undefined

  constructor(
    code: ProblemCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'Problem'
    this.code = code
    this.details = options.details
  }

  get status(): number {
    return PROBLEMS[this.code]
  }

  toBody(): ErrorBody {
    return { error: this.code, message: this.message, ...(this.details && { details: this.details }) }
  }
}

/** An event that the log does not have yet was named; `field` is where. */
export const cursorAhead = (field: string, seq: number, head: number): Problem =>
  new Problem('cursor_ahead', `The log ends at event ${head}, before event ${seq}. Give an earlier ${field}.`, {
    details: { [field]: seq, head },
  })

/** What is invalid in a field: where and why, without any text of the client. */
export type IssueDescription = { readonly path: string; readonly message: string }

type Issue = {
  readonly code?: string
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The keys of an issue `unrecognized_keys`. */
  readonly keys?: readonly string[]
  /** What is wrong for each type of an issue `invalid_union`. */
  readonly errors?: readonly (readonly Issue[])[]
}

/** The names below these fields are the client's own, and may be a secret in the wrong place. */
const FIELDS_OF_FREE_NAMES = new Set<PropertyKey>([
  'metadata',
  'extra_headers',
  'extra_body',
  'secrets',
  'headers',
  'env',
  'answers',
])

/** `fields`: the existing fields at `root`, if they are known. */
export function describeIssue(
  givenIssue: Issue,
  root: readonly string[],
  fields: readonly string[] = [],
): IssueDescription {
  const issue = innermost(givenIssue)
  const free = issue.path.findIndex((name) => FIELDS_OF_FREE_NAMES.has(name))
  const path = free < 0 ? issue.path : issue.path.slice(0, free + 1)
  const message =
    issue.code === 'unrecognized_keys' ? unknownFields(issue, namesAt(path, fields)) : plain(unionText(issue))
  return { path: [...root, ...path].map(String).join('.'), message }
}

/** The fields that exist there, if they are known. */
function namesAt(path: readonly PropertyKey[], fields: readonly string[]): readonly string[] {
  if (path.length === 0) return fields
  return path.at(-1) === 'hooks' ? HOOK_POINTS : namesInToolConfig(path)
}

/** Unknown names that are compared with those that exist. */
const MAX_COMPARED = 100

/** Zod's own sentence quotes the unknown names. This one has only names that exist. */
function unknownFields({ keys = [] }: Issue, fields: readonly string[]): string {
  if (fields.length === 0) return 'has an unknown field; /docs lists the fields'
  const nearest = keys.slice(0, MAX_COMPARED).map((name) => nearestName(name, fields))
  const meantNames = new Set(nearest.filter((name) => name !== undefined))
  if (meantNames.size > 0) return `has an unknown field; did you mean ${[...meantNames].join(', ')}?`
  return `has an unknown field; the fields are ${fields.join(', ')}`
}

/** Returns what is wrong with a value that fits none of several types, inside the type that it fits best, if that is known. */
function innermost(issue: Issue): Issue {
  const inner = issue.errors?.map(([first]) => first).find((first) => first !== undefined && first.path.length > 0)
  return inner ? innermost({ ...inner, path: [...issue.path, ...inner.path] }) : issue
}

function unionText({ errors = [], message }: Issue): string {
  if (message !== 'Invalid input') return message
  const reasons = new Set(errors.flatMap(([first]) => (first ? [unionText(first)] : [])))
  return [...reasons].join(', or ') || message
}

/** Uses the words of a client's programmer, who knows neither `undefined` nor `NaN` of this server's language. */
function plain(message: string): string {
  return message
    .replace('expected record,', 'expected object,')
    .replace(/^Invalid input: expected ([\w ]+), received undefined$/, 'is required; expected $1')
    .replace(/^Invalid input: expected number, received NaN$/, 'is not a number')
}
