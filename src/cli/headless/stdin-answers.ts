/** The lines of stdin with `--ask stdin`: messages wait for their turn, answers are sent at once, and acknowledged. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { AnswerLine, InputLine, TurnLine } from './input-lines.ts'

type Answering = {
  readonly conversation: ConversationHandle
  /** Called with the result of an answer: a frame `ack` or `problem`, as on a WebSocket. */
  readonly onAnswered: (frame: object) => void
  /** Called when no more answers come. Does not throw. */
  readonly onEnd: () => Promise<void>
}

/** Skips answers: takes each message when it is needed. */
export async function* turnsIn(lines: AsyncIterable<InputLine>): AsyncGenerator<TurnLine> {
  for await (const line of lines) if (!('answer' in line)) yield line
}

/** Reads at once. What is wrong with a line is thrown when the messages before it have been taken. */
export async function* turnsAmongAnswers(
  lines: AsyncIterable<InputLine>,
  answering: Answering,
): AsyncGenerator<TurnLine> {
  const reading = new AbortController()
  // Later lines are read while a message waits or is worked on.
  const messages = new ReadableStream<() => TurnLine>({
    start: (queue) => void readAll(lines, queue, { ...answering, signal: reading.signal }),
    cancel: () => reading.abort(),
  })
  for await (const take of messages) yield take()
}

/** The next message, or the end. Lines that only continue are left out: that has begun. The signal aborts when there is a message. */
export function nextMessage(turns: AsyncGenerator<TurnLine, void>) {
  const abort = new AbortController()
  const read = async () => {
    for (;;) {
      const line = await turns.next()
      if (line.done) return line
      if (!('content' in line.value)) continue
      abort.abort()
      return line
    }
  }
  const line = read()
  line.catch(() => {}) // it is awaited when the turn has ended
  const signal: AbortSignal = abort.signal
  return { line, signal }
}

/** Never throws. */
async function readAll(
  lines: AsyncIterable<InputLine>,
  messages: ReadableStreamDefaultController<() => TurnLine>,
  { conversation, onAnswered, onEnd, signal }: Answering & { readonly signal: AbortSignal },
): Promise<void> {
  const add = (take: () => TurnLine) => signal.aborted || messages.enqueue(take)
  try {
    for await (const line of lines) {
      if (signal.aborted) return
      if ('answer' in line) onAnswered(await send(conversation, line.answer))
      else add(() => line)
    }
  } catch (error) {
    add(() => {
      throw error
    })
  }
  if (!signal.aborted) messages.close()
  await onEnd()
}

async function send(conversation: ConversationHandle, answer: AnswerLine): Promise<object> {
  const id = answer.id === undefined ? {} : { id: answer.id }
  try {
    return { type: 'ack', ...id, of: answer.type, result: await execute(conversation, answer) }
  } catch (error) {
    if (!(error instanceof AgentServerError)) throw error
    const { code, message, details } = error
    return { type: 'problem', ...id, error: code, message, ...(details && { details }) }
  }
}

async function execute(conversation: ConversationHandle, answer: AnswerLine): Promise<object> {
  switch (answer.type) {
    case 'answer':
      return await conversation.requests.answer(answer.request_id, answer.answer)
    case 'pause':
      return await conversation.pause({ interrupt: answer.interrupt })
  }
}
