/** The cases of one client: each runs by itself, and is a line of standard output. It loads nothing of the project. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'

const CASE_MS = 60_000

const variable = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

export const URL_OF_SERVER = variable('AGENT_SERVER_URL')
export const KEY_OF_SERVER = variable('AGENT_SERVER_KEY')
/** The server accepts working directories in this one. */
export const HOME_OF_SERVER = variable('AGENT_SERVER_HOME')
export const WRONG_KEY = 'wrong-key-0123456789'

/** What the client says, and what the agent answers. `scripts/protocols/scripted-agent.ts` has the other side. */
export const HELLO = 'Hello'
export const GREETING = 'Hello there, I am the agent.'
/** An answer in so many pieces that no client gets it as one. */
export const SLOWLY = 'slowly'
export const WORDS = 'one two three four five six seven eight nine ten eleven twelve'
/** A call of TaskTracker, which needs no decision. */
export const PLAN = 'plan'
/** A call of Bash, which waits. */
export const COMPUTE = 'compute'
export const COMMAND = 'echo $((40+2)) > answer && cat answer'
export const RESULT = /^Read: .*\b42\b/s
export const REASON = 'The reason is 17.'
/** A call of `look_up`, a tool of the client. */
export const LOOK_UP = 'look up'
export const SHIPPED = 'shipped yesterday'
/** An answer that takes half a minute. */
export const ENDLESS = 'endless'

/** Prints a line for each case, and ends the process. Throws nothing: a case that throws is one that fails. */
export async function runCases(cases: Readonly<Record<string, () => Promise<void>>>): Promise<never> {
  for (const [name, run] of Object.entries(cases)) {
    const fault = await faultOf(run)
    await new Promise((resolve) => void process.stdout.write(`${JSON.stringify({ case: name, fault })}\n`, resolve))
  }
  process.exit(0)
}

async function faultOf(run: () => Promise<void>): Promise<string | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('It does not end.')), CASE_MS)
  try {
    await Promise.race([run(), late])
    return undefined
  } catch (error) {
    return inspect(error)
  } finally {
    clearTimeout(timer)
  }
}

/** The deny must have reached the agent, and nothing may have run. */
export function assertDenied(answer: string, reason = 'did not allow'): void {
  assert.match(answer, /^Read: /)
  assert.ok(answer.includes(reason), answer)
  assert.doesNotMatch(answer, /\b42\b/)
}

/** Waits until it holds. Only the time of the case ends it. */
export async function eventually(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => void setTimeout(resolve, 20))
}
