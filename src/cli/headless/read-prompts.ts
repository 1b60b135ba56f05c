/** Reads the input of a run without the chat: a prompt from the argument or stdin, or lines of JSON. */
import { fstatSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { InputLine } from './input-lines.ts'

/** How long a pipe may take for its first byte if there is an argument as well, in milliseconds. */
const PATIENCE_MS = 3000

/** Throws a `UsageError` if there is no prompt. Reads further lines only when they are needed. */
export async function readPrompts(
  { prompt, inputFormat, ask }: Pick<RunInvocation, 'prompt' | 'inputFormat' | 'ask'>,
  stdin: NodeJS.ReadStream,
): Promise<AsyncIterable<InputLine>> {
  if (inputFormat === 'stream-json') {
    if (stdin.isTTY) throw new UsageError('--input-format stream-json needs lines of JSON on stdin.')
    const { readInputLines } = await import('./input-lines.ts')
    return readInputLines(stdin, ask === 'stdin')
  }
  const given = await joined(prompt, stdin)
  if (given.trim() === '') throw new UsageError('the prompt is empty.')
  return only(given)
}

async function joined(prompt: string | undefined, stdin: NodeJS.ReadStream): Promise<string> {
  if (prompt === undefined) {
    if (stdin.isTTY) throw new UsageError('there is no prompt; give it as an argument or on stdin.')
    return await text(stdin)
  }
  const piped = !stdin.isTTY && hasInput() && (await beginsSoon(stdin)) ? await text(stdin) : ''
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

async function beginsSoon(stdin: NodeJS.ReadStream): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), PATIENCE_MS)
  stdin.once('readable', () => resolve(true))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

async function* only(content: string): AsyncGenerator<InputLine> {
  yield await Promise.resolve({ content })
}
