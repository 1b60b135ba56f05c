/** Tasks that run beside the agent as background jobs: commands and tickers. What the log has of them is for `tasks.ts`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandTaskResult, Runnable, TaskProgress, TaskResult } from '../../contract/task.ts'

export type Job = Exclude<Runnable, { type: 'AgentRun' }>

/** How a job ended; without a result when it made none. */
export type JobEnd = {
  readonly status: 'completed' | 'error'
  readonly result?: TaskResult
  readonly message?: string
}

/** With its result by then; `isOver`: it had come to its end by itself. */
export type StoppedJob = { readonly end: JobEnd; readonly isOver: boolean }

/** Resolves when the command's processes are dead, also when the signal ended them. */
export type RunTaskCommand = (
  command: string,
  options: { readonly timeout: number; readonly signal: AbortSignal },
) => Promise<CommandTaskResult>

export type JobsDeps = {
  readonly runCommand: RunTaskCommand
  readonly onTick: (taskId: string, progress: TaskProgress) => void
  /** Not called for a job that was stopped before it had ended. Until this resolves, `stop` tells the same end. */
  readonly onEnd: (taskId: string, end: JobEnd) => Promise<void>
}

type RunningJob = { readonly ended: Promise<JobEnd>; readonly abort: AbortController; isOver: boolean }

export class BackgroundJobs {
  readonly #deps: JobsDeps
  readonly #running = new Map<string, RunningJob>()

  constructor(deps: JobsDeps) {
    this.#deps = deps
  }

  start(taskId: string, job: Job): void {
    const abort = new AbortController()
    const running = { ended: this.#work(taskId, job, abort.signal), abort, isOver: false }
    this.#running.set(taskId, running)
    void this.#follow(taskId, running)
  }

  /** Resolves when nothing of it runs any more. Undefined when no such job runs. */
  async stop(taskId: string): Promise<StoppedJob | undefined> {
    const job = this.#running.get(taskId)
    if (!job) return undefined
    this.#running.delete(taskId)
    job.abort.abort()
    const { isOver } = job
    return { end: await job.ended, isOver }
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((taskId) => this.stop(taskId)))
  }

  /** Never throws: what goes wrong is an end, too. */
  async #work(taskId: string, job: Job, signal: AbortSignal): Promise<JobEnd> {
    const { runCommand, onTick } = this.#deps
    try {
      return job.type === 'Command'
        ? endOfCommand(job, await runCommand(job.command, { timeout: job.timeout, signal }))
        : await tick(job, (done) => onTick(taskId, { done, total: job.count }), signal)
    } catch (error) {
      return { status: 'error', message: error instanceof Error ? error.message : String(error) }
    }
  }

  async #follow(taskId: string, job: RunningJob): Promise<void> {
    const end = await job.ended
    if (this.#running.get(taskId) !== job) return
    job.isOver = true
    await this.#deps.onEnd(taskId, end)
    this.#running.delete(taskId)
  }
}

/** A non-zero exit is what the command had to say; an error is that it did not come to its own end. */
function endOfCommand({ timeout }: { readonly timeout: number }, result: CommandTaskResult): JobEnd {
  if (result.timed_out) return { status: 'error', result, message: `The command was ended after ${timeout} s.` }
  if (result.exit_code === null)
    return { status: 'error', result, message: 'The command was ended before it had come to its own end.' }
  return { status: 'completed', result }
}

type Ticking = { readonly interval: number; readonly count: number }

async function tick(
  { interval, count }: Ticking,
  onTick: (done: number) => void,
  signal: AbortSignal,
): Promise<JobEnd> {
  let ticks = 0
  while (ticks < count) {
    await sleep(interval * 1000, undefined, { signal }).catch(() => {}) // it only says that it was stopped
    if (signal.aborted) break
    ticks++
    if (ticks < count) onTick(ticks)
  }
  return { status: 'completed', result: { type: 'Ticker', ticks } }
}
