/** A program that asks with `query()`: its messages and answers are lines of stdin, its events lines of stdout. */
import { createInterface } from 'node:readline'
import type { PermissionVerdict, QueryOptions } from '../../../../src/index.ts'
import { query } from '../../../../src/index.ts'

type Line = {
  readonly say?: string
  readonly verdict?: PermissionVerdict
  readonly label?: string
  readonly interrupt?: true
}

/** Values that are awaited before or after they come. */
class Box<T> {
  readonly #values: T[] = []
  readonly #waiting: ((value: T) => void)[] = []

  put(value: T): void {
    const take = this.#waiting.shift()
    if (take) take(value)
    else this.#values.push(value)
  }

  async take(): Promise<T> {
    const value = this.#values.shift()
    return value ?? (await new Promise((resolve) => this.#waiting.push(resolve)))
  }
}

const [messages, verdicts, labels] = [new Box<string>(), new Box<PermissionVerdict>(), new Box<string>()]
const given: QueryOptions = JSON.parse(process.argv[2] ?? '{}')
const options: QueryOptions = {
  ...given,
  includePartialMessages: true,
  canUseTool: () => verdicts.take(),
  answerQuestions: async ([first]) => ({ [first!.question]: await labels.take() }),
}

async function* prompt() {
  for (;;) yield await messages.take()
}
const asking = query({ prompt: prompt(), options })

createInterface({ input: process.stdin }).on('line', (text) => {
  const { say, verdict, label, interrupt }: Line = JSON.parse(text)
  if (say !== undefined) messages.put(say)
  if (verdict) verdicts.put(verdict)
  if (label !== undefined) labels.put(label)
  if (interrupt) void asking.interrupt()
})
for await (const event of asking) process.stdout.write(`${JSON.stringify(event)}\n`)
