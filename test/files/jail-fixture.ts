/** A jail around a directory of the test's own, with a canary beside it. */
import { mkdir, mkdtemp, readdir, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import { Queue } from '../../src/lib/queue.ts'
import type { FileRules } from '../../src/files/jail/file-gate.ts'
import type { Jail, JailOptions } from '../../src/files/jail/path-jail.ts'
import { openJail } from '../../src/files/jail/path-jail.ts'

export const CANARY = 'canary: nobody may see this'

export type JailBench = AsyncDisposable & {
  readonly jail: Jail
  readonly workdir: string
  /** Beside the workdir; holds `canary`. */
  readonly outside: string
  readonly inside: (...names: string[]) => string
  /** Another jail around the same, or around what is there now. */
  readonly open: (rules?: FileRules) => Promise<Jail>
}

export async function setJail(rules: FileRules = { forbidden: [] }): Promise<JailBench> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'jail-')))
  const [workdir, outside] = [join(home, 'workdir'), join(home, 'outside')]
  await mkdir(workdir)
  await mkdir(outside)
  await writeFile(join(outside, 'canary'), CANARY)
  const queue = new Queue({ limit: 4 })
  const io: JailOptions['io'] = (work, signal) => queue.run(work, { signal })
  const open = (own = rules) => openJail({ workdir, rules: own, io, signal: new AbortController().signal })
  const jail = await open()
  return {
    jail,
    workdir,
    outside,
    inside: (...names) => join(workdir, ...names),
    open,
    async [Symbol.asyncDispose]() {
      await jail[Symbol.asyncDispose]()
      await expect.poll(() => openIn(home), { message: 'what is left open' }).toEqual([])
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** What this process has open in there. */
async function openIn(directory: string): Promise<string[]> {
  const open = await readdir('/proc/self/fd')
  const paths = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return paths.filter((path) => path.startsWith(directory))
}

/** The code of what was thrown; `done` when nothing was. */
export async function outcomeOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'done'
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}
