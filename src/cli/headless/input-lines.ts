/** Reads the lines of `--input-format stream-json`: messages, lines that only start a run, and the answers of `--ask stdin`. */
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { UserInput } from '../../contract/values/message.ts'
import { describeIssue } from '../../contract/problem.ts'
import { AnswerFrame, PauseFrame } from '../../contract/socket.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { readLines } from './read-stdin.ts'

/** A message of the API, or the form of other agents that contains one. */
const Message = z.union([
  UserInput,
  z.object({ type: z.literal('user'), message: UserInput }).transform((line) => line.message),
])

/** Starts a run without a message. */
const RunLine = z.strictObject({ type: z.literal('run') })

/** What a client can send on a WebSocket while a run is active. */
const AnswerLine = z.discriminatedUnion('type', [AnswerFrame, PauseFrame])
export type AnswerLine = z.infer<typeof AnswerLine>

/** What a run begins with: a message, or only the conversation so far. */
export type TurnLine = { readonly content: UserInput['content'] } | { readonly run: true }

export type InputLine = TurnLine | { readonly answer: AnswerLine }

/** Throws a `UsageError` for a line that is nothing of this. Skips blank lines. */
export async function* readInputLines(
  stdin: Readable,
  takesAnswers: boolean,
  signal: AbortSignal,
): AsyncGenerator<InputLine, void> {
  let number = 0
  for await (const line of readLines(stdin, signal)) {
    number += 1
    if (line.trim() !== '') yield readLine(line, number, takesAnswers)
  }
}

function readLine(line: string, number: number, takesAnswers: boolean): InputLine {
  const json = parseJson(line)
  if (isAnswer(json)) return { answer: readAnswer(json, number, takesAnswers) }
  if (RunLine.safeParse(json).success) return { run: true }
  const parseResult = Message.safeParse(json)
  if (parseResult.success) return { content: parseResult.data.content }
  const what = takesAnswers ? 'neither a message nor an answer' : 'not a message'
  throw new UsageError(
    `line ${number} of stdin is ${what}; write {"type":"user","message":{"role":"user","content":"..."}}.`,
    { cause: parseResult.error },
  )
}

const ANSWERS: ReadonlySet<unknown> = new Set(AnswerLine.options.map(({ shape }) => shape.type.value))

const isAnswer = (json: unknown): boolean =>
  typeof json === 'object' && json !== null && 'type' in json && ANSWERS.has(json.type)

function readAnswer(json: unknown, number: number, takesAnswers: boolean): AnswerLine {
  if (!takesAnswers) throw new UsageError(`line ${number} of stdin is an answer, which needs --ask stdin.`)
  const parseResult = AnswerLine.safeParse(json)
  if (parseResult.success) return parseResult.data
  const issues = parseResult.error.issues.slice(0, MAX_ISSUES).map((issue) => describeIssue(issue, []))
  const why = issues.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')
  throw new UsageError(`line ${number} of stdin is not a valid answer: ${why}.`, { cause: parseResult.error })
}

/** Further issues would not help to correct the line. */
const MAX_ISSUES = 3

/** Undefined is nothing that a line can be. */
function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
