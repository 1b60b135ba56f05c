/**
 * Asks the thread of schemas while only some descriptors are free, from none to more than it needs, before the thread has
 * started and while it runs. Frees all of them when the first attempt has failed, and prints the answers as JSON.
 */
import { openSync, closeSync } from 'node:fs'
import { SchemaThread } from '../../../src/agent/output/schema-thread.ts'
import { until } from '../../support/until.ts'

/** How many descriptors are free, and whether the thread runs already. The thread needs about twelve to start. */
const CASES: readonly (readonly [number, boolean])[] = [
  [0, false],
  [6, false],
  [8, false],
  [10, false],
  [0, true],
]
const QUESTION = { schema: { type: 'integer' }, text: '1' }

const answers: unknown[] = []
for (const [free, isWarm] of CASES) {
  const thread = new SchemaThread({ idleMs: 0 })
  if (isWarm) await thread.check(QUESTION)
  const held = allBut(free)
  const asked = thread.check(QUESTION)
  const isAnswered = await Promise.race([asked.then(() => true), hasFailed(thread)])
  for (const descriptor of held) closeSync(descriptor)
  answers.push([isAnswered, await asked.catch((error: Error) => error.message)])
}
console.log(JSON.stringify(answers))

function allBut(free: number): number[] {
  const held: number[] = []
  try {
    for (;;) held.push(openSync('/dev/null', 'r'))
  } catch {
    for (const descriptor of held.splice(0, free)) closeSync(descriptor)
    return held
  }
}

/** The thread has ended, and waits for descriptors. */
async function hasFailed(thread: SchemaThread): Promise<false> {
  await until('the end of the thread', () => Promise.resolve(!thread.isRunning))
  return false
}
