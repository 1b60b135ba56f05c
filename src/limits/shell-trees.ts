/** The shells of one conversation that run now, by the processes they were started as: what is below them, and their end. */
import { endMarkedProcesses, findMarkedProcesses } from '../shell/processes/marked-processes.ts'
import { findDescendants, findProcess, signalProcess } from '../shell/processes/process-table.ts'
import type { Launch } from '../sandbox/launch.ts'
import type { ProcessSample, ProcessSamples } from './process-usage.ts'
import { membersOf, memoryFilesOf } from './process-usage.ts'

type Generations = Launch['generations']

export class ShellTrees {
  readonly #conversationId: string
  readonly #stateDir: string
  /** By the pid of the program that was started. */
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

  /** With those that have left their tree, which they can only without a PID namespace. */
  async members(samples: ProcessSamples): Promise<ProcessSample[]> {
    const roots = [...this.#started.keys()]
    if (!this.#hasOpenTrees) return membersOf(samples, roots)
    const marked = await findMarkedProcesses(this.#conversationId, this.#stateDir)
    return membersOf(samples, [...roots, ...marked.map(({ entry }) => entry.pid)])
  }

  /** Bytes of the files in memory that only these shells see. */
  async memoryFiles(): Promise<number> {
    const inside = [...this.#started].filter(([, generations]) => generations > 0).flatMap(([pid]) => firstsOf(pid))
    const sizes = await Promise.all(inside.map((entry) => memoryFilesOf(entry.pid)))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** Kills all of them with all that they have started. */
  async killAll(): Promise<void> {
    for (const [pid, generations] of this.#started) {
      const started = findProcess(pid)
      // The first process of a PID namespace takes all others with it.
      const killed = [...(generations > 0 ? firstsOf(pid) : []), ...(started ? [started] : [])]
      for (const entry of killed) signalProcess(entry, 'SIGKILL')
    }
    if (this.#hasOpenTrees) await endMarkedProcesses(this.#conversationId)
  }

  get #hasOpenTrees(): boolean {
    return this.#started.values().some((generations) => generations === 0)
  }
}

const firstsOf = (pid: number) => findDescendants(pid).filter(({ parentId }) => parentId === pid)
