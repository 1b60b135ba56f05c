/** Tasks that run beside the agent: commands and tickers. Knows what they do while they live; what the log tells of them is for `tasks.ts`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandTaskResult, Runnable, TaskProgress, TaskResult } from '../../contract/task.ts'

export type Job = Exclude<Runnable, { type: 'AgentRun' }>

/** What came of a job; without a result when nothing did. */
export type JobEnd = {
  readonly status: 'completed' | 'error'
  readonly result?: TaskResult
  readonly message?: string
}

/** With what had come of it by then; `isOver`: it had come to its end by itself. */
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

export interface Jobs {
  start(taskId: string, job: Job): void
  /** Resolves when nothing of it runs any more. Undefined for what is no job here. */
  stop(taskId: string): Promise<StoppedJob | undefined>
  stopAll(): Promise<void>
}

type RunningJob = { readonly ended: Promise<JobEnd>; readonly abort: AbortController; isOver: boolean }

export function createJobs({ runCommand, onTick, onEnd }: JobsDeps): Jobs {
  const running = new Map<string, RunningJob>()

  /** Never throws: what goes wrong is an end, too. */
  const work = async (taskId: string, job: Job, signal: AbortSignal): Promise<JobEnd> => {
    try {
      return job.type === 'Command'
        ? tellCommand(job, await runCommand(job.command, { timeout: job.timeout, signal }))
        : await tick(job, (done) => onTick(taskId, { done, total: job.count }), signal)
    } catch (error) {
      return { status: 'error', message: error instanceof Error ? error.message : String(error) }
    }
  }

  const follow = async (taskId: string, job: RunningJob) => {
    const end = await job.ended
    if (running.get(taskId) !== job) return
    job.isOver = true
    await onEnd(taskId, end)
    running.delete(taskId)
  }

  const stop: Jobs['stop'] = async (taskId) => {
    const job = running.get(taskId)
    if (!job) return undefined
    running.delete(taskId)
    job.abort.abort()
    const { isOver } = job
    return { end: await job.ended, isOver }
  }

  return {
    start(taskId, job) {
      const abort = new AbortController()
      const entry = { ended: work(taskId, job, abort.signal), abort, isOver: false }
      running.set(taskId, entry)
      void follow(taskId, entry)
    },
    stop,
    async stopAll() {
      await Promise.all([...running.keys()].map(stop))
    },
  }
}

/** A non-zero exit is what the command had to say; an error is that it did not come to its own end. */
function tellCommand({ timeout }: { readonly timeout: number }, result: CommandTaskResult): JobEnd {
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
