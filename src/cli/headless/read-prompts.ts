/** Reads the input of a run without the chat: a prompt from the argument or stdin, or lines of JSON. */
import { fstatSync } from 'node:fs'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { InputLine } from './input-lines.ts'
import { readText } from './read-stdin.ts'

/** How long a pipe may take for its first byte if there is an argument as well, in milliseconds. */
const PATIENCE_MS = 3000

export type PromptInput = {
  readonly first: InputLine
  /** With the first. Further ones are read when they are needed, and throw a `UsageError` if they are wrong. */
  readonly lines: AsyncIterable<InputLine>
}

/** Waits for the first line, or for all of a prompt. Throws a `UsageError` if stdin has no prompt. `signal` ends the wait. */
export async function readPrompts(
  { prompt, inputFormat, ask }: Pick<RunInvocation, 'prompt' | 'inputFormat' | 'ask'>,
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<PromptInput> {
  if (inputFormat === 'stream-json') {
    if (stdin.isTTY) throw new UsageError('--input-format stream-json needs lines of JSON on stdin.')
    const { readInputLines } = await import('./input-lines.ts')
    const rest = readInputLines(stdin, ask === 'stdin', signal)
    const { value: first, done } = await rest.next()
    if (done) throw new UsageError('there is no prompt on stdin.')
    return { first, lines: withFirst(first, rest) }
  }
  const content = await joined(prompt, stdin, signal)
  if (content.trim() === '') throw new UsageError('the prompt is empty.')
  return { first: { content }, lines: withFirst({ content }) }
}

async function* withFirst(first: InputLine, rest?: AsyncIterable<InputLine>): AsyncGenerator<InputLine> {
  yield first
  if (rest) yield* rest
}

/** Throws a `UsageError` if the server would refuse the message for its size. */
export function requireFitting(line: InputLine, maxBodyBytes: number): void {
  if (Buffer.byteLength(JSON.stringify(line)) + MAX_WRAPPING_BYTES <= maxBodyBytes) return
  throw new UsageError(
    `the prompt is too large: the server accepts ${maxBodyBytes} bytes (OPENHANDS_MAX_BODY_BYTES). Give the path of a file instead.`,
  )
}

/** Of the request around the content. */
const MAX_WRAPPING_BYTES = 100

async function joined(prompt: string | undefined, stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<string> {
  if (prompt === undefined) {
    if (stdin.isTTY) throw new UsageError('there is no prompt; give it as an argument or on stdin.')
    return await readText(stdin, signal)
  }
  const piped = !stdin.isTTY && hasInput() && (await beginsSoon(stdin, signal)) ? await readText(stdin, signal) : ''
  return piped.trim() === '' ? prompt : `${prompt}\n\n${piped}`
}

/** With an argument only a file or a pipe of a shell counts: other programs leave stdin open without using it. */
function hasInput(): boolean {
  try {
    const stat = fstatSync(STDIN)
    return stat.isFile() || stat.isFIFO()
  } catch {
    return false // stdin is closed
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
