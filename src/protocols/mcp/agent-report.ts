/** What a tool returns about an agent: its status, its answer and what it waits for. The id is in the first line. */
import { z } from 'zod'
import type { Event } from '../../contract/events/event.ts'
import { describeEvent } from '../../contract/events/describe-event.ts'
import { Status, StopReason } from '../../contract/events/status.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { AskedToolUse } from '../../contract/values/permission.ts'
import { lineOfRequest, RequestKindName, REQUESTS } from '../../contract/requests/request-kinds.ts'
import { timerMs } from '../../lib/bounded-wait.ts'
import { oneLine } from '../../telemetry/plain-text.ts'
import type { AgentLook, FoundAgent } from './agents.ts'

const PendingCall = AskedToolUse.pick({ tool_use_id: true, name: true, input: true, input_hash: true, reason: true })

export const AgentReport = z.object({
  conversation_id: z.uuid(),
  status: Status,
  final_text: z.string().optional().describe('The answer of the last run.'),
  stop_reason: StopReason.optional().describe('Why the last run ended.'),
  error: z.string().optional().describe('Why the last run failed.'),
  pending: z.array(PendingCall.extend({ request_id: z.uuid() })).describe('Calls that wait for `decide`.'),
  questions: z.array(z.string()).describe('Questions that wait for an answer with `continue_agent`.'),
  waiting: z
    .array(z.object({ request_id: z.uuid(), kind: RequestKindName, about: z.string(), answer: z.string() }))
    .describe('What else waits, and who can answer it: no tool of this server does.'),
  seq: z.int().describe('The last event of the conversation.'),
})
export type AgentReport = z.infer<typeof AgentReport>

export type ReportCaller = {
  readonly signal: AbortSignal
  /** Reports progress, if the caller wants it. */
  readonly report?: (progress: number, message: string) => Promise<void>
}

/** Waits until the agent rests or waits, at most for the time, and not after the caller has gone. */
export async function reportOf(agent: FoundAgent, seconds: number, caller: ReportCaller) {
  await settle(agent, seconds, caller)
  return resultOf(agent.id, await agent.look())
}

/** Returns the result of a tool for what the agent does. */
export function resultOf(id: string, { status, lastSeq, requests, result, error }: AgentLook) {
  const report: AgentReport = {
    conversation_id: id,
    status,
    ...(status !== 'running' && result && { final_text: result.final_text }),
    ...(status !== 'running' && requests.length === 0 && result && { stop_reason: result.stop_reason }),
    ...(status !== 'running' && error && { error: error.message }),
    pending: requests.flatMap((item) =>
      item.kind === 'permission'
        ? item.payload.tool_uses
            .filter(({ decision }) => !decision)
            .map((call) => ({ ...PendingCall.parse(call), request_id: item.request_id }))
        : [],
    ),
    questions: requests.flatMap((item) =>
      item.kind === 'question' ? item.payload.questions.map(({ question }) => question) : [],
    ),
    waiting: requests.flatMap((item) =>
      item.kind === 'permission' || item.kind === 'question' ? [] : waitingFor(id, item),
    ),
    seq: lastSeq,
  }
  return { content: [{ type: 'text' as const, text: textOf(report) }], structuredContent: report }
}

type OtherRequest = Exclude<OpenRequest, { kind: 'permission' | 'question' }>

/** Returns what waits for somebody whom the caller of this tool is not, and who that is. */
export function waitingFor(conversationId: string, request: OtherRequest): AgentReport['waiting'][number] {
  const { request_id, kind } = request
  const path = `POST /conversations/${conversationId}/requests/${request_id}`
  const scope = REQUESTS[kind].scope
  const answer = `${REQUESTS[kind].who} (${path}, with a key that has the scope ${scope}). stop_agent ends the wait.`
  return { request_id, kind, about: lineOfRequest(request), answer }
}

/** Reasons that say no more than the answer. */
const WHOLE: ReadonlySet<StopReason | undefined> = new Set([undefined, 'completed', 'finished'])

function textOf(report: AgentReport): string {
  const { conversation_id, status, final_text, stop_reason, error, pending, questions, waiting } = report
  return [
    `Conversation ${conversation_id}: ${status}`,
    ...(final_text === undefined || final_text === '' ? [] : ['', final_text]),
    ...(WHOLE.has(stop_reason)
      ? []
      : ['', `It ended before it was done: ${stop_reason}. continue_agent continues it.`]),
    ...(error === undefined ? [] : ['', `It failed: ${error}`]),
    ...pending.map((call) => `\nIt waits for a decision: ${JSON.stringify(call)}`),
    ...questions.map((question) => `\nIt asks: ${question}`),
    ...waiting.map(({ about, answer }) => `\nIt ${about}. ${answer}`),
  ].join('\n')
}

/** How often progress is reported, in milliseconds. Clients end calls that are silent for a minute. */
const PROGRESS_MS = 10_000

async function settle(agent: FoundAgent, seconds: number, { signal, report }: ReportCaller): Promise<void> {
  const { status, lastSeq } = await agent.look()
  if (status !== 'running' || seconds === 0) return
  let last = 'The agent works.'
  let progress = 0
  const tell = () => void report?.(++progress, last).catch(() => {}) // the caller is gone
  using timer = report ? every(PROGRESS_MS, tell) : undefined
  const timeout = AbortSignal.timeout(timerMs(seconds * 1000))
  const until = AbortSignal.any([signal, timeout])
  try {
    for await (const event of agent.events(lastSeq, until)) {
      if (isEnd(event)) return
      last = oneLine(describeEvent(event))
    }
  } catch (error) {
    if (!until.aborted) throw error
  }
  void timer
}

export const isEnd = (event: Event): boolean => event.type === 'StatusUpdate' && event.status !== 'running'

function every(ms: number, run: () => void): Disposable {
  run()
  const timer = setInterval(run, ms)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
