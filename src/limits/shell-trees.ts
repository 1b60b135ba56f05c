/**
 * The running shells of one conversation, identified by the processes they were started as: lists their descendants and
 * kills them.
 */
import { endMarkedProcesses, findMarkedProcesses } from '../shell/processes/marked-processes.ts'
import { findDescendants, findProcess, signalProcess } from '../shell/processes/process-table.ts'
import type { Launch } from '../sandbox/launch.ts'
import type { ProcessSample, ProcessSamples } from './process-usage.ts'
import { membersOf, memoryFilesOf } from './process-usage.ts'

type Generations = Launch['generations']

export class ShellTrees {
  readonly #conversationId: string
  readonly #stateDir: string
  /** The key is the pid of the started program. */
  readonly #started = new Map<number, Generations>()

  constructor(conversationId: string, stateDir: string) {
    this.#conversationId = conversationId
    this.#stateDir = stateDir
  }

  get isEmpty(): boolean {
    return this.#started.size === 0
  }

  add(pid: number, generations: Generations): void {
    this.#started.set(pid, generations)
  }

  delete(pid: number): void {
    this.#started.delete(pid)
  }

  /** Includes processes that have left the tree, which is possible only without a PID namespace. */
  async members(samples: ProcessSamples): Promise<ProcessSample[]> {
    const roots = [...this.#started.keys()]
    if (!this.#hasOpenTrees) return membersOf(samples, roots)
    const markedProcesses = await findMarkedProcesses(this.#conversationId, this.#stateDir)
    return membersOf(samples, [...roots, ...markedProcesses.map(({ entry }) => entry.pid)])
  }

  /** Returns the bytes of files in memory that only these shells see. */
  async memoryFiles(): Promise<number> {
    const inside = [...this.#started].filter(([, generations]) => generations > 0).flatMap(([pid]) => firstsOf(pid))
    const sizes = await Promise.all(inside.map((entry) => memoryFilesOf(entry.pid)))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** Kills all shells with all their descendants. */
  async killAll(): Promise<void> {
    for (const [pid, generations] of this.#started) {
      const startedProcess = findProcess(pid)
      // Killing the first process of a PID namespace kills all others.
      const killedProcesses = [...(generations > 0 ? firstsOf(pid) : []), ...(startedProcess ? [startedProcess] : [])]
      for (const entry of killedProcesses) signalProcess(entry, 'SIGKILL')
    }
    if (this.#hasOpenTrees) await endMarkedProcesses(this.#conversationId)
  }

  get #hasOpenTrees(): boolean {
    return this.#started.values().some((generations) => generations === 0)
  }
}

const firstsOf = (pid: number) => findDescendants(pid).filter(({ parentId }) => parentId === pid)
