/** Runs tasks as background jobs outside the agent: commands and tickers. `tasks.ts` handles their log. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandTaskResult, Runnable, TaskProgress, TaskResult } from '../../contract/values/task.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

export type Job = Exclude<Runnable, { type: 'AgentRun' }>

/** How a job ended; without a result if it produced none. */
export type JobEnd = {
  readonly status: 'completed' | 'error'
  readonly result?: TaskResult
  readonly message?: string
}

/** A stopped job with its result so far; `isOver`: it had already ended by itself. */
export type StoppedJob = { readonly end: JobEnd; readonly isOver: boolean }

/** Resolves when the command's processes are dead, including when the signal ended them. */
export type RunTaskCommand = (
  command: string,
  options: { readonly timeout: number; readonly signal: AbortSignal },
) => Promise<CommandTaskResult>

export type JobsDeps = {
  readonly runCommand: RunTaskCommand
  readonly onTick: (taskId: string, progress: TaskProgress) => void
  /** Called unless the job was stopped before it ended. Until this resolves, `stop` reports the same end. */
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

  /** Resolves when all of the job has ended. Undefined if there is no such job. */
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

  /** Resolves with the end. Never throws: an error is an end, too. */
  async #work(taskId: string, job: Job, signal: AbortSignal): Promise<JobEnd> {
    const { runCommand, onTick } = this.#deps
    try {
      return job.type === 'Command'
        ? endOfCommand(job, await runCommand(job.command, { timeout: job.timeout, signal }))
        : await tick(job, (doneCount) => onTick(taskId, { done: doneCount, total: job.count }), signal)
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

/** A non-zero exit code is a result of the command; an error means that it did not finish by itself. */
function endOfCommand({ timeout }: { readonly timeout: number }, result: CommandTaskResult): JobEnd {
  if (result.timed_out) return { status: 'error', result, message: `The command was ended after ${timeout} s.` }
  if (result.exit_code === null)
    return { status: 'error', result, message: 'The command was stopped before it finished.' }
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
    await sleep(timerMs(interval * 1000), undefined, { signal }).catch(() => {}) // an abort means that the job was stopped
    if (signal.aborted) break
    ticks++
    if (ticks < count) onTick(ticks)
  }
  return { status: 'completed', result: { type: 'Ticker', ticks } }
}
