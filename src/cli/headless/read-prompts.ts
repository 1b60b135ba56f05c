/** Reads the input of a run without the chat: a prompt from the argument or stdin, or lines of JSON. */
import type { Stats } from 'node:fs'
import { fstatSync } from 'node:fs'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { ImagePart } from '../../contract/values/message.ts'
import type { InputLine } from './input-lines.ts'
import { readText } from './read-stdin.ts'

/** How long a pipe may take for its first byte if there is an argument as well, in milliseconds. */
const PATIENCE_MS = 3000

export type PromptInput = {
  /** Returns the first line; repeated calls return the same. Undefined for an empty input, which can only resume a conversation. */
  readonly readFirst: () => Promise<InputLine | undefined>
  /**
   * The first line is included. Further ones are read when they are needed, and throw a `UsageError` if they are wrong.
   */
  readonly lines: AsyncIterable<InputLine>
}

type Source = Pick<RunInvocation, 'prompt' | 'inputFormat' | 'ask' | 'resume'> & {
  /** They follow the text. */
  readonly images?: readonly ImagePart[]
}

/** Waits for all of a prompt, but not for a line. Throws a `UsageError` if stdin has no prompt. `signal` ends the wait. */
export async function readPrompts(
  givenSource: Source,
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<PromptInput> {
  // `-` is stdin, as for other programs.
  const source = givenSource.prompt === '-' ? { ...givenSource, prompt: undefined } : givenSource
  if (isDirectory(statOfStdin())) throw new UsageError('stdin is a directory; give a file or a pipe.')
  const isResumed = source.resume !== undefined
  if (source.inputFormat === 'stream-json') {
    if (stdin.isTTY) throw new UsageError('--input-format stream-json needs lines of JSON on stdin.')
    const { readInputLines } = await import('./input-lines.ts')
    return peekable(readInputLines(stdin, source.ask === 'stdin', signal), isResumed ? () => {} : requireMessage)
  }
  const { images = [] } = source
  const text = await joinedPrompt(source, stdin, signal)
  const content = images.length === 0 ? text : [{ type: 'text' as const, text }, ...images]
  if (text.trim() !== '') return peekable(linesOf({ content }))
  if (source.prompt !== undefined || !isResumed || images.length > 0) throw new UsageError('the prompt is empty.')
  return peekable(linesOf())
}

/** Throws for what cannot begin a conversation. */
function requireMessage(first: InputLine | undefined): void {
  if (!first) throw new UsageError('there is no prompt on stdin.')
  if ('run' in first) throw new UsageError('a new conversation begins with a message; line 1 of stdin is not one.')
}

function peekable(
  lines: AsyncGenerator<InputLine, void>,
  check: (first: InputLine | undefined) => void = () => {},
): PromptInput {
  let reading: Promise<InputLine | undefined> | undefined
  const read = async () => {
    const first = (await lines.next()).value ?? undefined
    check(first)
    return first
  }
  const readFirst = () => (reading ??= read())
  return { readFirst, lines: withFirst(readFirst, lines) }
}

async function* linesOf(...lines: readonly InputLine[]): AsyncGenerator<InputLine, void> {
  yield* lines
}

async function* withFirst(
  readFirst: PromptInput['readFirst'],
  rest: AsyncIterable<InputLine>,
): AsyncGenerator<InputLine> {
  const first = await readFirst()
  if (first) yield first
  yield* rest
}

/** Throws a `UsageError` if the server would refuse the message for its size. */
export function requireFitting(line: InputLine, maxBodyBytes: number): void {
  if (Buffer.byteLength(JSON.stringify(line)) + MAX_WRAPPING_BYTES <= maxBodyBytes) return
  throw new UsageError(
    `the prompt is too large: the server accepts ${maxBodyBytes} bytes (OPENHANDS_MAX_BODY_BYTES). Give the path of a file instead.`,
  )
}

/** The size of the request around the content. */
const MAX_WRAPPING_BYTES = 100

/** Empty if a resumed conversation continues without a prompt. */
async function joinedPrompt(
  { prompt, resume }: Pick<Source, 'prompt' | 'resume'>,
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<string> {
  if (prompt === undefined) {
    if (!stdin.isTTY) return await readText(stdin, signal)
    if (resume !== undefined) return ''
    throw new UsageError('there is no prompt; give it as an argument or on stdin.')
  }
  const pipedText = !stdin.isTTY && hasInput() && (await beginsSoon(stdin, signal)) ? await readText(stdin, signal) : ''
  return pipedText.trim() === '' ? prompt : `${prompt}\n\n${pipedText}`
}

const isDirectory = (stdin: Stats | undefined): boolean => stdin?.isDirectory() === true

/** Returns true for a file or a pipe of a shell only: other programs leave stdin open without using it. */
function hasInput(): boolean {
  const stdin = statOfStdin()
  return stdin !== undefined && (stdin.isFile() || stdin.isFIFO())
}

/** Undefined if it is closed. */
function statOfStdin(): Stats | undefined {
  try {
    return fstatSync(STDIN)
  } catch {
    return undefined
  }
}

const STDIN = 0

async function beginsSoon(stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), PATIENCE_MS)
  signal.addEventListener('abort', () => resolve(false), { once: true })
  stdin.once('readable', () => resolve(true))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}
