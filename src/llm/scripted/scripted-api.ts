/** What the APIs of the scripted model have in common: the interface to one, and the parts of a turn. */
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from './script.ts'

type Body = ScriptedQuestion['body']

/** Sends a scripted turn as a server of this API would: in chunks, or as one document. */
export type ScriptedApi = {
  /** The end of the path of its requests. */
  readonly path: string
  readonly messagesOf: (body: Body) => readonly ScriptedMessage[]
  /** Returns the error object for a request that the vendor would refuse. */
  readonly faultIn?: (body: Body) => object | undefined
  readonly chunksOf: (turn: ScriptedTurn, question: ScriptedQuestion) => Iterable<string>
  readonly wholeAnswer: (turn: ScriptedTurn, question: ScriptedQuestion) => object
  readonly errorBody: (error: unknown) => object
}

/** Arguments are streamed in pieces of this many characters, similar to a model's tokens. */
const ARGUMENT_PIECE = 16

export function piecesOf(text: string): string[] {
  const count = Math.ceil(text.length / ARGUMENT_PIECE)
  return Array.from({ length: count }, (_, at) => text.slice(at * ARGUMENT_PIECE, (at + 1) * ARGUMENT_PIECE))
}

export function wordsIn(text = ''): string[] {
  return text.match(/\s+\S*|\S+/g) ?? []
}

/** Ids count the answers of the conversation: ids are unique in a conversation, also across a restart. */
export function callsIn(turn: ScriptedTurn, { messages }: ScriptedQuestion) {
  const answers = messages.filter(({ role }) => role === 'assistant').length
  return (turn.calls ?? []).map(({ id, name, arguments: input }, index) => ({
    id: id ?? `call_${answers + 1}_${index + 1}`,
    name,
    arguments: typeof input === 'string' ? input : JSON.stringify(input),
  }))
}

/** Four characters per token, as in English. */
export function estimateTokens(turn: ScriptedTurn, { text }: ScriptedQuestion): { input: number; output: number } {
  const turnText = `${turn.reasoning ?? ''}${turn.text ?? ''}${JSON.stringify(turn.calls ?? '')}`
  return { input: Math.ceil(text.length / 4), output: Math.ceil(turnText.length / 4) }
}
