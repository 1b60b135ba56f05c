/** Reads the prompts of a run without the chat: from the argument, from stdin, or one from each line of JSON. */
import { fstatSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { UserInput } from '../../contract/message.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'

type Content = UserInput['content']

/** A message of the API, or the form of other agents that contains one. */
const Line = z.union([
  UserInput,
  z.object({ type: z.literal('user'), message: UserInput }).transform((line) => line.message),
])

/** How long a pipe may take for its first byte if there is an argument as well, in milliseconds. */
const PATIENCE_MS = 3000

/** Throws a `UsageError` if there is no prompt. Reads further lines only when they are needed. */
export async function readPrompts(
  { prompt, inputFormat }: Pick<RunInvocation, 'prompt' | 'inputFormat'>,
  stdin: NodeJS.ReadStream,
): Promise<AsyncIterable<Content>> {
  if (inputFormat === 'stream-json') {
    if (stdin.isTTY) throw new UsageError('--input-format stream-json needs lines of JSON on stdin.')
    return readLines(stdin)
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

async function* only(content: string): AsyncGenerator<Content> {
  yield await Promise.resolve(content)
}

async function* readLines(stdin: NodeJS.ReadStream): AsyncGenerator<Content> {
  let number = 0
  for await (const line of createInterface({ input: stdin })) {
    number += 1
    if (line.trim() !== '') yield readLine(line, number).content
  }
  if (number === 0) throw new UsageError('there is no prompt on stdin.')
}

function readLine(line: string, number: number): UserInput {
  try {
    return Line.parse(JSON.parse(line))
  } catch (cause) {
    throw new UsageError(
      `line ${number} of stdin is not a message; write {"type":"user","message":{"role":"user","content":"..."}}.`,
      { cause },
    )
  }
}
