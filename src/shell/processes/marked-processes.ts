/**
 * Finds and ends the processes of a conversation by a mark in their environment: processes that left the shell's
 * process tree (`setsid`, daemons) keep it. Reliable only in a sandbox with a PID namespace: a process can be started
 * without it.
 */
import { sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ProcessCensus, type CountedProcess } from './process-census.ts'
import { findDescendants, isAlive, signalProcess, type ProcessEntry } from './process-table.ts'
import { processKey } from './process-table.ts'

const MARK = 'AGENT_SERVER_SHELL'
const STATE_MARK = 'AGENT_SERVER_STATE_DIR'
const COMMAND_MARK = 'AGENT_SERVER_COMMAND'
/** Distinguishes programs from all possible sessions. */
const PROGRAM_PREFIX = '+'
/** Time limit of one search for processes to end; processes that the kernel does not end are abandoned. */
const END_TIMEOUT_MS = 2500
/** A search has at least these, however late it is: on a machine that stands still, its time passes without work. */
const LEAST_ROUNDS = 10
const ROUND_MS = 5
/** The same when environments could not be read in time. */
const LATE_ROUND_MS = 100
/** One scan can miss a process: during exec it has no environment, and its child may be too new. */
const EMPTY_ROUNDS = 3

/** Returns the id of a program (`program.ts`) in the place of that of a session. */
export const programId = (name: string): string => PROGRAM_PREFIX + name

export const isProgramId = (sessionId: string): boolean => sessionId.startsWith(PROGRAM_PREFIX)

/** Returns the variables that every process of a shell session is started with. */
export function shellMark(conversationId: string, sessionId: string, stateDir: string): Record<string, string> {
  return { [MARK]: `${conversationId}/${sessionId}`, [STATE_MARK]: stateDir }
}

/** Returns how the environments contain the mark of each shell whose directory begins with this text. */
export const markOfStateIn = (beginning: string): string => `${STATE_MARK}=${beginning}`

/** Returns the variables that every process of one command is started with, in addition to those of its shell. */
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
  readonly all: readonly CountedProcess<Marks>[]
  readonly isWhole: boolean
  readonly byConversation: ReadonlyMap<string, readonly CountedProcess<Marks>[]>
}

/** The whole server has one census, because there is one /proc: concurrent searches of conversations share one scan. */
const census = new ProcessCensus<Marks, MarkedCensus>(
  readMarks,
  (all, isWhole) => ({ all, isWhole, byConversation: Map.groupBy(all, ({ marks }) => marks.conversationId) }),
  ({ conversationId }) => conversationId,
)

/** Returns the processes of one conversation whose shells have their directories in `stateDir`. */
export async function findMarkedProcesses(conversationId: string, stateDir: string): Promise<MarkedProcess[]> {
  const countedProcesses = (await census.take(conversationId)).byConversation.get(conversationId) ?? []
  return countedProcesses.flatMap(({ entry, marks }) => {
    const { sessionId, commandId } = marks
    return marks.stateDir?.startsWith(stateDir + sep) ? [{ entry, sessionId, commandId }] : []
  })
}

/** Ends exactly these processes and all their descendants; resolves when all are dead. Returns the ended processes. */
export async function endTrees(roots: readonly ProcessEntry[]): Promise<ProcessEntry[]> {
  const endedProcesses = new Map<string, ProcessEntry>()
  await endAll(() => {
    const alive = roots.filter(isAlive).flatMap((root) => [root, ...findDescendants(root.pid)])
    // Descendants may outlive their root, and have new children by now.
    const orphans = [...endedProcesses.values()].filter(isAlive).flatMap((one) => [one, ...findDescendants(one.pid)])
    const foundProcesses = [...alive, ...orphans].filter(({ isZombie }) => !isZombie)
    for (const process of foundProcesses) endedProcesses.set(processKey(process), process)
    return Promise.resolve({ entries: foundProcesses, isWhole: true })
  })
  return [...endedProcesses.values()]
}

/** Ends all processes of a command, including those that left the process tree of its shell. */
export async function endMarkedCommand(conversationId: string, commandId: string): Promise<void> {
  await endAll(() => findMarked(conversationId, (marks) => marks.commandId === commandId))
}

/** Ends all processes of a session, or of the whole conversation; resolves when none is left. */
export async function endMarkedProcesses(conversationId: string, sessionId?: string): Promise<void> {
  await endAll(() => findMarked(conversationId, (marks) => sessionId === undefined || marks.sessionId === sessionId))
}

/** Resolves to true if the data has this conversation. */
export type IsOurs = (conversationId: string) => boolean | Promise<boolean>

/**
 * Ends the processes that a killed server left running, of all conversations for which `isOurs` is true. Call it only
 * with the lock on `dataDir`: none of these processes belongs to a running server. Processes of a server on a copy of
 * the data are not ended. Returns the ids of the conversations that had some. If there are none, as usual, it scans
 * only once.
 */
export async function endOrphans(dataDir: string, isOurs: IsOurs): Promise<string[]> {
  const ids = new Set<string>()
  const find = async () => {
    const { all, isWhole } = await census.take()
    const foundProcesses: CountedProcess<Marks>[] = []
    for (const one of all) {
      const { conversationId, stateDir } = one.marks
      const isAnothers = stateDir?.startsWith(dataDir + sep) === false
      if (!isAnothers && (await isOurs(conversationId))) foundProcesses.push(one)
    }
    for (const { marks } of foundProcesses) ids.add(marks.conversationId)
    return { entries: entriesOf(foundProcesses), isWhole }
  }
  if (isSome(await find())) await endAll(find)
  return [...ids]
}

/** Ends everything that shells with directories in `dataDir` have started. Returns the processes that are left. */
export async function endAllMarked(dataDir: string): Promise<ProcessEntry[]> {
  const find = async () => {
    const { all, isWhole } = await census.take()
    return { entries: entriesOf(all.filter(({ marks }) => marks.stateDir?.startsWith(dataDir + sep))), isWhole }
  }
  if (!isSome(await find())) return []
  await endAll(find)
  return (await find()).entries
}

/** `isWhole`: no other process can be one of these. */
type FoundProcesses = { readonly entries: readonly ProcessEntry[]; readonly isWhole: boolean }

const isSome = ({ entries, isWhole }: FoundProcesses) => entries.length > 0 || !isWhole

async function findMarked(conversationId: string, isWanted: (marks: Marks) => boolean): Promise<FoundProcesses> {
  const { byConversation, isWhole } = await census.take(conversationId)
  const countedProcesses = byConversation.get(conversationId) ?? []
  return { entries: entriesOf(countedProcesses.filter(({ marks }) => isWanted(marks))), isWhole }
}

const entriesOf = (countedProcesses: readonly CountedProcess<Marks>[]) => countedProcesses.map(({ entry }) => entry)

function readMarks(environment: string): Marks | undefined {
  // Most processes have no mark and need no parsing.
  if (!environment.includes(`${MARK}=`)) return undefined
  const [conversationId, sessionId] = valueIn(environment, MARK)?.split('/') ?? []
  if (conversationId === undefined || sessionId === undefined) return undefined
  const [stateDir, commandId] = [valueIn(environment, STATE_MARK), valueIn(environment, COMMAND_MARK)]
  return { conversationId, sessionId, stateDir, commandId }
}

async function endAll(find: () => Promise<FoundProcesses>): Promise<void> {
  const deadline = performance.now() + END_TIMEOUT_MS
  for (let round = 0, empty = 0; isInTime(round, deadline) && empty < EMPTY_ROUNDS; round++) {
    const frozen = await freezeAll(find, deadline)
    empty = isSome(frozen) ? 0 : empty + 1
    for (const process of frozen.entries) signalProcess(process, 'SIGKILL')
    await delay(frozen.isWhole ? ROUND_MS : LATE_ROUND_MS)
  }
}

const isInTime = (round: number, deadline: number) => round < LEAST_ROUNDS || performance.now() < deadline

function valueIn(environment: string, name: string): string | undefined {
  const entry = environment.split('\0').find((each) => each.startsWith(`${name}=`))
  return entry?.slice(name.length + 1)
}

/** Stops all processes before killing any: otherwise one could keep starting others while its parent dies. */
async function freezeAll(find: () => Promise<FoundProcesses>, deadline: number): Promise<FoundProcesses> {
  const frozenProcesses = new Map<string, ProcessEntry>()
  let isWhole = true
  for (let round = 0; isInTime(round, deadline); round++) {
    const scan = await find()
    isWhole = scan.isWhole
    const foundProcesses = scan.entries.map((process) => [processKey(process), process] as const)
    const running = foundProcesses.filter(([key]) => !frozenProcesses.has(key))
    if (running.length === 0) break
    for (const [key, process] of running) {
      signalProcess(process, 'SIGSTOP')
      frozenProcesses.set(key, process)
    }
  }
  return { entries: [...frozenProcesses.values()], isWhole }
}
