/**
 * Finds and ends the processes of a conversation by a mark in their environment: those that left the shell's process
 * tree (`setsid`, daemons) keep it. Exact only in a sandbox with a PID namespace: a process can start without it.
 */
import { sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ProcessCensus, type Counted } from './process-census.ts'
import { findDescendants, isAlive, signalProcess, type ProcessEntry } from './process-table.ts'

const MARK = 'AGENT_SERVER_SHELL'
const STATE_MARK = 'AGENT_SERVER_STATE_DIR'
const COMMAND_MARK = 'AGENT_SERVER_COMMAND'
/** Of one search for processes to end, until none is found any more: those that the kernel does not end are given up. */
const END_TIMEOUT_MS = 2500
const ROUND_MS = 5
/** One look can miss a process: while it executes a program it has no environment, and its child may be too new. */
const EMPTY_ROUNDS = 3

/** The variables that every process of a shell session is started with. */
export function shellMark(conversationId: string, sessionId: string, stateDir: string): Record<string, string> {
  return { [MARK]: `${conversationId}/${sessionId}`, [STATE_MARK]: stateDir }
}

/** The variables that every process of one command is started with, beside those of its shell. */
export function commandMark(commandId: string): Record<string, string> {
  return { [COMMAND_MARK]: commandId }
}

export type MarkedProcess = {
  readonly entry: ProcessEntry
  readonly sessionId: string
  readonly commandId: string | undefined
}

type Marks = {
  readonly conversationId: string
  readonly sessionId: string
  readonly stateDir: string | undefined
  readonly commandId: string | undefined
}

type MarkedCensus = {
  readonly all: readonly Counted<Marks>[]
  readonly byConversation: ReadonlyMap<string, readonly Counted<Marks>[]>
}

/** One for this whole process, as there is one /proc: what conversations look for at the same time is one look. */
const census = new ProcessCensus<Marks, MarkedCensus>(readMarks, (all) => ({
  all,
  byConversation: Map.groupBy(all, ({ marks }) => marks.conversationId),
}))

/** Of one conversation, as far as its shells have their directories in `stateDir`. */
export async function findMarkedProcesses(conversationId: string, stateDir: string): Promise<MarkedProcess[]> {
  const found = await markedWith(conversationId)
  return found.flatMap(({ entry, marks }) => {
    const { sessionId, commandId } = marks
    return marks.stateDir?.startsWith(stateDir + sep) ? [{ entry, sessionId, commandId }] : []
  })
}

/** Ends those very processes and all below them; resolves when none of them lives. Answers which they were. */
export async function endTrees(roots: readonly ProcessEntry[]): Promise<ProcessEntry[]> {
  const ended = new Map<string, ProcessEntry>()
  await endAll(() => {
    const alive = roots.filter(isAlive).flatMap((root) => [root, ...findDescendants(root.pid)])
    // What was below a root may outlive it, and have children of its own by now.
    const orphans = [...ended.values()].filter(isAlive).flatMap((one) => [one, ...findDescendants(one.pid)])
    const found = [...alive, ...orphans].filter(({ isZombie }) => !isZombie)
    for (const process of found) ended.set(keyOf(process), process)
    return Promise.resolve(found)
  })
  return [...ended.values()]
}

/** Ends all processes of a command, also those that have left the tree of its shell. */
export async function endMarkedCommand(commandId: string): Promise<void> {
  await endAll(async () => entriesOf((await census.take()).all.filter(({ marks }) => marks.commandId === commandId)))
}

/** Ends all processes of a session, or of the whole conversation; resolves when none is left. */
export async function endMarkedProcesses(conversationId: string, sessionId?: string): Promise<void> {
  await endAll(async () => {
    const found = await markedWith(conversationId)
    return entriesOf(found.filter(({ marks }) => sessionId === undefined || marks.sessionId === sessionId))
  })
}

/**
 * Ends what a server that was killed has left running, of all the conversations that `isOurs` knows. For who holds the
 * lock on `dataDir`: none of these belongs to a server that lives. Those of a server on a copy of the data are spared.
 * Answers the ids of the conversations that had some. When there are none, as nearly always, it looks only once.
 */
export async function endOrphans(dataDir: string, isOurs: (conversationId: string) => boolean): Promise<string[]> {
  const ids = new Set<string>()
  const find = async () => {
    const { all } = await census.take()
    const found = all.filter(({ marks: { conversationId, stateDir } }) => {
      const isAnothers = stateDir?.startsWith(dataDir + sep) === false
      return !isAnothers && isOurs(conversationId)
    })
    for (const { marks } of found) ids.add(marks.conversationId)
    return entriesOf(found)
  }
  if ((await find()).length > 0) await endAll(find)
  return [...ids]
}

/** Ends whatever shells with their directories in `dataDir` have started. Answers what is still there. */
export async function endAllMarked(dataDir: string): Promise<ProcessEntry[]> {
  const find = async () => {
    const { all } = await census.take()
    return entriesOf(all.filter(({ marks }) => marks.stateDir?.startsWith(dataDir + sep)))
  }
  if ((await find()).length === 0) return []
  await endAll(find)
  return await find()
}

const markedWith = async (conversationId: string) => (await census.take()).byConversation.get(conversationId) ?? []

const entriesOf = (counted: readonly Counted<Marks>[]) => counted.map(({ entry }) => entry)

function readMarks(environment: string): Marks | undefined {
  // Without it, as most are: nothing has to be taken apart.
  if (!environment.includes(`${MARK}=`)) return undefined
  const [conversationId, sessionId] = valueIn(environment, MARK)?.split('/') ?? []
  if (conversationId === undefined || sessionId === undefined) return undefined
  const [stateDir, commandId] = [valueIn(environment, STATE_MARK), valueIn(environment, COMMAND_MARK)]
  return { conversationId, sessionId, stateDir, commandId }
}

async function endAll(find: () => Promise<ProcessEntry[]>): Promise<void> {
  const deadline = performance.now() + END_TIMEOUT_MS
  for (let empty = 0; performance.now() < deadline && empty < EMPTY_ROUNDS;) {
    const frozen = await freezeAll(find, deadline)
    empty = frozen.length === 0 ? empty + 1 : 0
    for (const process of frozen) signalProcess(process, 'SIGKILL')
    await delay(ROUND_MS)
  }
}

const keyOf = ({ pid, startTime }: ProcessEntry) => `${pid} ${startTime}`

function valueIn(environment: string, name: string): string | undefined {
  const entry = environment.split('\0').find((each) => each.startsWith(`${name}=`))
  return entry?.slice(name.length + 1)
}

/** Stops all before any is killed: else one could start another while its parent dies, for as long as it is quicker. */
async function freezeAll(find: () => Promise<ProcessEntry[]>, deadline: number): Promise<ProcessEntry[]> {
  const frozen = new Map<string, ProcessEntry>()
  // Once at least: what is found late is killed all the same.
  for (let round = 0; round === 0 || performance.now() < deadline; round++) {
    const found = (await find()).map((process) => [keyOf(process), process] as const)
    const running = found.filter(([key]) => !frozen.has(key))
    if (running.length === 0) break
    for (const [key, process] of running) {
      signalProcess(process, 'SIGSTOP')
      frozen.set(key, process)
    }
  }
  return [...frozen.values()]
}
