/**
 * Many tasks at once: a conversation for each line of a file, a few at a time, with the sum of the costs. It can be
 * stopped at any point and started again: what is done is not done twice, because the requests have the same keys.
 *
 * Usage: AGENT_SERVER_URL=… AGENT_SERVER_KEY=… node examples/batch.ts NAME TASKS.txt
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createClient } from 'agent-server/client'

/** More would wait in the queue of the server. */
const CONCURRENCY = 8

const [, , name = 'batch', file = 'tasks.txt'] = process.argv
const { AGENT_SERVER_URL: baseUrl = 'http://127.0.0.1:8000', AGENT_SERVER_KEY: apiKey } = process.env
const client = createClient({ baseUrl, apiKey })
const tasks = (await readFile(file, 'utf8')).split('\n').filter((line) => line.trim() !== '')

type Done = { readonly task: string; readonly answer: string; readonly costUsd: number; readonly isNew: boolean }

let failures = 0
const done: Done[] = []
const queue = tasks.entries()
await Promise.all(Array.from({ length: CONCURRENCY }, work))

const cost = done.reduce((sum, { costUsd }) => sum + costUsd, 0)
const repeated = done.filter(({ isNew }) => !isNew).length
console.log(`${done.length} done, ${repeated} of them before; ${failures} failed; $${cost.toFixed(4)}`)
process.exitCode = failures > 0 ? 1 : 0

async function work(): Promise<void> {
  for (const [index, task] of queue) {
    try {
      done.push(await finish(task, keyOf(index, task)))
    } catch (error) {
      failures += 1
      console.error(`${task}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

/** The same line of the same batch has the same key: the server returns the conversation that it created before. */
async function finish(task: string, key: string): Promise<Done> {
  const { id } = await client.conversations.create({ title: task, user_id: name }, { idempotencyKey: key })
  const conversation = client.conversation(id)
  const before = await conversation.wait()
  const isNew = before.result?.stop_reason !== 'completed'
  // The key also makes a message that was sent before the program stopped the same message.
  if (isNew)
    await conversation.postMessage(
      { message: { role: 'user', content: task }, run: true },
      { idempotencyKey: `${key}-task` },
    )
  const { result, error, status } = isNew ? await conversation.wait() : before
  if (result?.stop_reason !== 'completed') throw new Error(error?.message ?? result?.stop_reason ?? status)
  console.log(`${task}: ${result.final_text}`)
  return { task, answer: result.final_text, costUsd: result.cost_usd ?? 0, isNew }
}

function keyOf(index: number, task: string): string {
  return createHash('sha256').update(`${name} ${index} ${task}`).digest('hex').slice(0, 32)
}
