/** A program whose query lasts until the standard input ends: `node holds-directory.ts '{"model":…}'`. Prints its events. */
import { query } from '../../../src/index.ts'

async function* prompt() {
  yield 'hello'
  for await (const _ of process.stdin);
}

for await (const event of query({ prompt: prompt(), options: JSON.parse(process.argv[2] ?? '{}') }))
  process.stdout.write(`${event.type}\n`)
