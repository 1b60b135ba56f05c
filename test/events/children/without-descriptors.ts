/** Runs with few file descriptors: uses them all up around appends to a log that is closed while idle, and prints what happened as JSON. */
import { closeSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { EventLog } from '../../../src/events/event-log.ts'
import { createJsonlStore } from '../../../src/storage/files/log/jsonl-store.ts'
import { message, readAll, seqsOf } from '../fixtures.ts'
import { until } from '../../support/until.ts'

const [directory, id] = process.argv.slice(2) as [string, string]
const IDLE_MS = 20
const stored = await createJsonlStore({ directory, idleMs: IDLE_MS }).create(id)
const log = new EventLog({ log: stored, onListenerError: () => undefined })

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )
}

const openFiles = () =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return [] // the descriptor of the look itself
    }
  })

/** All that there are; answers how many. */
function takeDescriptors(): number[] {
  const taken: number[] = []
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {
    return taken // there are no more
  }
}

const outcomes = [await outcomeOf(log.append([message('a')]))]
for (let round = 0; round < 2; round++) {
  // By then the log holds no descriptor.
  await until('the log to be closed', async () => !openFiles().some((path) => path.startsWith(directory)))
  const taken = takeDescriptors()
  outcomes.push(await outcomeOf(log.append([message('b')])), await outcomeOf(log.read({ limit: 1 })))
  // At the same time, so that the append comes upon an opening that is under way.
  outcomes.push(...(await Promise.all([outcomeOf(log.read({ limit: 1 })), outcomeOf(log.append([message('c')]))])))
  for (const descriptor of taken) closeSync(descriptor)
  outcomes.push(await outcomeOf(log.append([message('d')])))
}
const seqs = seqsOf(await readAll(log))
writeFileSync(1, JSON.stringify({ outcomes, seqs, failed: log.failed }))
await log.close('closing')
