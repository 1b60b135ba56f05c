/**
 * Finds and ends the processes of a conversation by a mark in their environment: those that left the shell's process
 * tree (`setsid`, daemons) keep it. Exact only behind a wall with a PID namespace: a process can start without it.
 */
import { sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  findByEnvironment,
  findDescendants,
  isAlive,
  readEnvironments,
  signalProcess,
  type ProcessEntry,
} from './process-table.ts'

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

/** Of one conversation, as far as its shells have their directories in `stateDir`. */
export async function findMarkedProcesses(conversationId: string, stateDir: string): Promise<MarkedProcess[]> {
  const found: MarkedProcess[] = []
  await readEnvironments((environment, entry) => {
    const [id, sessionId] = valueIn(environment, MARK)?.split('/') ?? []
    if (id !== conversationId || sessionId === undefined) return
    if (!valueIn(environment, STATE_MARK)?.startsWith(stateDir + sep)) return
    found.push({ entry, sessionId, commandId: valueIn(environment, COMMAND_MARK) })
  })
  return found
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
  await endAll(() => findByEnvironment(`${COMMAND_MARK}=${commandId}`, { prefix: false }))
}

/**
 * Ends what a server that was killed has left running, of all the conversations that `isOurs` knows. For who holds the
 * lock on `dataDir`: none of these belongs to a server that lives. Those of a server on a copy of the data are spared.
 * Answers the ids of the conversations that had some. When there are none, as nearly always, it looks only once.
 */
export async function endOrphans(dataDir: string, isOurs: (conversationId: string) => boolean): Promise<string[]> {
  const ids = new Set<string>()
  const find = async () => {
    const found: ProcessEntry[] = []
    await readEnvironments((environment, process) => {
      const id = valueIn(environment, MARK)?.split('/')[0]
      const isAnothers = valueIn(environment, STATE_MARK)?.startsWith(dataDir + sep) === false
      if (id === undefined || isAnothers || !isOurs(id)) return
      found.push(process)
      ids.add(id)
    })
    return found
  }
  if ((await find()).length > 0) await endAll(find)
  return [...ids]
}

/** Ends all processes of a session, or of the whole conversation; resolves when none is left. */
export async function endMarkedProcesses(conversationId: string, sessionId?: string): Promise<void> {
  const entry = `${MARK}=${conversationId}/${sessionId ?? ''}`
  await endAll(() => findByEnvironment(entry, { prefix: sessionId === undefined }))
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
