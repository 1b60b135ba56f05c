/**
 * The kinds of requests to the outside. A new kind is one entry here and its `RequestHandler`: events, lists, answers, scopes
 * and the one line that terminals print follow from the entry.
 */
import { z } from 'zod'
import { PostToolResult } from '../client-tools/client-tool.ts'
import { PostHookAnswer } from '../hooks/client-hooks.ts'
import { HookPoint } from '../hooks/hook-point.ts'
import { DecideNetworkRequest, NetworkTarget } from '../values/network.ts'
import { AskedToolUse, Behavior, Decision, DecidePermission, Hash } from '../values/permission.ts'
import { AnswerQuestion, Answers, AskedQuestion } from '../values/question.ts'
import { inputText, textOf } from './output-text.ts'

const Json = z.record(z.string(), z.unknown().describe('A JSON value.'))

/** What the log has of a kind: absent where a request is only in memory. */
type Logged<Payload extends z.ZodObject, Answer extends z.ZodObject> = {
  /** The payload of `RequestOpened`. */
  readonly opened: Payload
  /** The answer of `RequestAnswered`. */
  readonly answered: Answer
  readonly asks: (payload: z.infer<Payload>) => string
  /** One line about an answer. */
  readonly says: (answer: z.infer<Answer>) => string
}

type Kind = {
  /** Is a part of the names of its schemas. */
  readonly name: string
  readonly about: string
  /** What a key needs to answer it. */
  readonly scope: 'approve' | 'write'
  /** What a list shows. */
  readonly payload: z.ZodObject
  /** The body of an answer, without its `kind`. */
  readonly answer: z.ZodRawShape
  readonly example: object
  /** One line about the payload, without its subject. */
  readonly asks: (payload: never) => string
  /** Says to those who cannot answer who can. */
  readonly who: string
}

const logEntry = <Payload extends z.ZodObject, Answer extends z.ZodObject>(parts: Logged<Payload, Answer>) => parts

const Permission = z.object({ tool_uses: z.array(AskedToolUse) })
const Question = z.object({ questions: z.array(AskedQuestion) })
const Elicitation = z.object({
  server: z.string().describe('The name of the MCP server that asks.'),
  ...Question.shape,
})
const ClientTool = z.object({
  name: z.string(),
  input: Json.describe('The input to execute, as hooks and decisions left it.'),
})
const Network = z.object(NetworkTarget)
const Hook = z.object({
  client: z.string().describe('The client that must answer.'),
  hook_id: z.string(),
  hook_point: HookPoint,
  input: Json.optional().describe(
    'What a command hook reads on its standard input. Only in lists for this client: with `client`.',
  ),
})

const questionsIn = ({ questions }: z.infer<typeof Question>) => questions.map(({ question }) => question).join('; ')
const answersIn = ({ answers }: { readonly answers: Answers }) =>
  `answered: ${Object.values(answers).flat().join('; ')}`

const PERSON = 'A person answers in the dashboard or the chat, or a program with the API'

export const REQUESTS = {
  permission: {
    name: 'Permission',
    about: 'calls need a decision',
    scope: 'approve',
    who: PERSON,
    payload: Permission.extend({
      tool_uses: z.array(AskedToolUse.extend({ decision: Behavior.optional().describe('Absent while it waits.') })),
    }),
    answer: DecidePermission.shape,
    example: {
      decisions: [
        {
          tool_use_id: 'call_1',
          input_hash: '9f2c7e0d4b6a8150c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0',
          behavior: 'deny',
          message: 'Not in production.',
        },
      ],
    },
    ...logEntry({
      opened: Permission,
      answered: z.object({
        decisions: z.array(z.object({ tool_use_id: z.string(), input_hash: Hash, ...Decision.shape })),
      }),
      asks: ({ tool_uses: calls }) =>
        `waits for a decision: ${calls.map(({ name, input }) => `${name}: ${inputText(input)}`).join('; ')}`,
      says: ({ decisions }) => decisions.map(({ behavior, tool_use_id }) => `${behavior} ${tool_use_id}`).join(', '),
    }),
  },
  question: {
    name: 'Question',
    about: 'the agent asks the user',
    scope: 'write',
    who: PERSON,
    payload: Question,
    answer: AnswerQuestion.shape,
    example: { answers: { 'Which database should it use?': 'PostgreSQL', '1': ['Tests', 'Documentation'] } },
    ...logEntry({
      opened: Question,
      answered: z.object({ answers: Answers }),
      asks: (payload) => `asks the user: ${questionsIn(payload)}`,
      says: answersIn,
    }),
  },
  elicitation: {
    name: 'Elicitation',
    about: 'an MCP server asks the user while a call runs',
    scope: 'write',
    who: PERSON,
    payload: Elicitation,
    answer: AnswerQuestion.shape,
    example: { answers: { Confirm: 'Yes' } },
    ...logEntry({
      opened: Elicitation,
      answered: z.object({ answers: Answers }),
      asks: (payload) => `asks the user for the MCP server ${payload.server}: ${questionsIn(payload)}`,
      says: answersIn,
    }),
  },
  client_tool: {
    name: 'ClientTool',
    about: 'a client executes a call',
    scope: 'write',
    who: 'The program that offers this tool answers with its result',
    payload: ClientTool,
    answer: PostToolResult.shape,
    example: { output: { number: '17', status: 'shipped' } },
    ...logEntry({
      opened: ClientTool,
      answered: z.object({
        output: z.unknown().describe('As the client sent it, without secrets.'),
        is_error: z.boolean(),
      }),
      asks: ({ name, input }) => `waits for a client: ${name}: ${inputText(input)}`,
      says: ({ output, is_error }) => `a client ${is_error ? 'reported an error' : 'answered'}: ${textOf(output)}`,
    }),
  },
  network: {
    name: 'Network',
    about: 'a command wants to reach a host',
    scope: 'approve',
    who: PERSON,
    payload: Network,
    answer: DecideNetworkRequest.shape,
    example: { behavior: 'allow', remember: true },
    ...logEntry({
      opened: Network,
      answered: z.object({ behavior: Behavior }),
      asks: ({ host, port }) => `waits for a decision: ${host}:${port}`,
      says: ({ behavior }) => behavior,
    }),
  },
  hook: {
    name: 'Hook',
    about: 'a client answers a hook',
    scope: 'approve',
    who: 'The client that has registered the hook answers',
    payload: Hook,
    answer: PostHookAnswer.shape,
    asks: ({ client, hook_id, hook_point }: z.infer<typeof Hook>) =>
      `waits for the client ${client}, which has the hook ${hook_id} (${hook_point})`,
    example: { output: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } } },
  },
} as const satisfies Record<string, Kind>

export type RequestKind = keyof typeof REQUESTS

/** The kinds that the log has. */
export type StoredKind = {
  [K in RequestKind]: (typeof REQUESTS)[K] extends { opened: object } ? K : never
}[RequestKind]

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const REQUEST_KINDS = Object.keys(REQUESTS) as [RequestKind, ...RequestKind[]]

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the entries with `opened`
export const STORED_KINDS = REQUEST_KINDS.filter((kind) => 'opened' in REQUESTS[kind]) as [StoredKind, ...StoredKind[]]

export const RequestKindName = z
  .enum(REQUEST_KINDS)
  .meta({ id: 'RequestKind' })
  .describe(REQUEST_KINDS.map((kind) => `\`${kind}\`: ${REQUESTS[kind].about}.`).join(' '))

type Requests = typeof REQUESTS

/** A part of an entry, with the type that it has for this kind. */
export const partOf = <K extends RequestKind, P extends keyof Requests[K]>(kind: K, part: P): Requests[K][P] =>
  REQUESTS[kind][part]

/** Fields of every request, in events and in lists. */
export const OfRequest = {
  request_id: z.uuid(),
  deadline: z.iso.datetime().optional().describe('When it is closed without an answer. Absent: never.'),
  tool_use_ids: z.array(z.string()).describe('The tool calls that wait for it. The results of all of them end it too.'),
}

/** The schemas of all kinds, as the options of a union. */
export type OneOf<Schemas> = [Schemas[keyof Schemas], ...Schemas[keyof Schemas][]]

type Line = (value: unknown) => string

/** One line about an open request, without its subject. */
export const lineOfRequest = ({ kind, payload }: { readonly kind: RequestKind; readonly payload: unknown }): string =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and payload belong together
  (REQUESTS[kind].asks as Line)(payload)

/** One line about an answer. */
export const lineOfAnswer = ({ kind, answer }: { readonly kind: StoredKind; readonly answer: unknown }): string =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and answer belong together
  (REQUESTS[kind].says as Line)(answer)
