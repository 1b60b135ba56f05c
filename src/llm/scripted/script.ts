/** The script of a scripted model: turns, their selection for a request, and reading a script from a file. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { codeOf } from '../../lib/error-code.ts'

const ScriptedCall = z.strictObject({
  name: z.string(),
  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).describe('A string goes out as it is.'),
  id: z.string().optional(),
})

export const ScriptedTurn = z.strictObject({
  reasoning: z.string().optional(),
  text: z.string().optional(),
  calls: z.array(ScriptedCall).optional(),
  finish_reason: z.string().nullable().optional(),
  usage: z.record(z.string(), z.unknown()).nullable().optional().describe('Instead of an estimate; null sends none.'),
  delay_ms: z.number().nonnegative().optional().describe('Before the answer begins.'),
  chunk_delay_ms: z.number().nonnegative().optional().describe('Before each chunk of it.'),
  status: z.int().min(200).max(599).optional().describe('With `error`, an answer that fails from the start.'),
  headers: z.record(z.string(), z.string()).optional(),
  error: z.unknown().optional().describe('Without `status`, sent in the stream after what was said.'),
  cut_after: z.int().nonnegative().optional().describe('The connection breaks after this many chunks.'),
  hang: z.boolean().optional().describe('After the last chunk, neither an end nor a close.'),
  plain: z.boolean().optional().describe('One JSON document, as from a server that cannot stream.'),
  raw: z
    .array(z.union([z.string(), z.custom<Uint8Array>((value) => value instanceof Uint8Array)]))
    .optional()
    .describe('The pieces of the answer as they go out, instead of all that.'),
})
export type ScriptedTurn = z.infer<typeof ScriptedTurn>

const Turns = z.array(ScriptedTurn).min(1)

const Replies = z.strictObject({
  replies: z
    .array(z.strictObject({ when: z.string().optional().describe('Part of what the user said.'), turns: Turns }))
    .min(1),
})

/** The contents of a script file: the turns of a whole conversation, or turns in reply to the user's last message. */
export type ScriptFile = z.infer<typeof Turns> | z.infer<typeof Replies>

/** The parts of a request that select the turn. */
export type ScriptedQuestion = {
  /** The messages, whatever API they came through: results of tools have the role `tool`. */
  readonly messages: readonly ScriptedMessage[]
  readonly body: { readonly messages: readonly ScriptedMessage[]; readonly [key: string]: unknown }
  /** The exact body. */
  readonly text: string
  /** How many requests with the same body came before: 0, unless the client retries. */
  readonly attempt: number
}
export type ScriptedMessage = { readonly role: string; readonly content?: unknown; readonly [key: string]: unknown }

/**
 * Turns are selected by the content of the request, not by counting requests, so that several conversations can use one
 * script, and an interrupted one continues where it was: by the number of answers in the conversation, or, with
 * `replies`, since the user's last message. Failing turns before a turn are played first: one for each attempt.
 */
export type Script = ScriptFile | ((question: ScriptedQuestion) => ScriptedTurn | Promise<ScriptedTurn>)

export async function loadScript(path: string): Promise<ScriptFile> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(`${path} cannot be read (${codeOf(cause) ?? 'error'}). Name a JSON file with a model script.`, {
      cause,
    })
  })
  try {
    const script: unknown = JSON.parse(text)
    return Array.isArray(script) ? Turns.parse(script) : Replies.parse(script)
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : String(error)
    throw new Error(`${path} is not a valid model script:\n${why}`, { cause: error })
  }
}

/** Plays one turn per request, whatever its content; for tests in which only the order matters. */
export function inOrder(turns: readonly ScriptedTurn[]): Script {
  let next = 0
  return () => turns[next++] ?? endOfScript(next - 1)
}

export async function pickTurn(script: Script, question: ScriptedQuestion): Promise<ScriptedTurn> {
  if (typeof script === 'function') return script(question)
  const { messages } = question
  if (Array.isArray(script)) return turnAt(script, countAnswers(messages), question.attempt)
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const lastText = textOf(messages[last]?.content).toLowerCase()
  const reply = script.replies.find(({ when }) => when === undefined || lastText.includes(when.toLowerCase()))
  return turnAt(reply?.turns ?? [], countAnswers(messages.slice(last + 1)), question.attempt)
}

function turnAt(turns: readonly ScriptedTurn[], step: number, attempt: number): ScriptedTurn {
  const answering = turns.map((turn, at) => (fails(turn) ? -1 : at)).filter((at) => at >= 0)
  const start = step === 0 ? 0 : (answering[step - 1] ?? turns.length) + 1
  const end = answering[step] ?? turns.length - 1
  const turn = start <= end ? turns[Math.min(start + attempt, end)] : undefined
  return turn ?? endOfScript(step)
}

function fails(turn: ScriptedTurn): boolean {
  return (turn.status ?? 200) >= 400 || turn.error !== undefined || turn.cut_after !== undefined
}

/** Fails visibly: a script that is too short is an error in its test. */
function endOfScript(step: number): ScriptedTurn {
  return { status: 400, error: { message: `the script has no turn ${step} for this request` } }
}

function countAnswers(messages: readonly ScriptedMessage[]): number {
  return messages.filter(({ role }) => role === 'assistant').length
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('\n') : ''
}
