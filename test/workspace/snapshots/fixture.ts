/** A workdir with a store of snapshots next to it, and the real git. */
import { mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UnfinishedFiles } from '../../../src/files/jail/unfinished-files.ts'
import { applyRestore } from '../../../src/workspace/snapshots/apply-restore.ts'
import { findGit } from '../../../src/workspace/git/run-git.ts'
import { GitStore } from '../../../src/workspace/snapshots/git-store.ts'
import type { WrittenTrees } from '../../../src/workspace/snapshots/write-snapshot.ts'
import { planRestore } from '../../../src/workspace/snapshots/plan-restore.ts'
import { keepSnapshot, readSnapshot } from '../../../src/workspace/snapshots/stored-snapshots.ts'
import { WorkdirLooks } from '../../../src/workspace/snapshots/workdir-looks.ts'
import { removeAll } from '../../support/remove-all.ts'

/** `place`: that of another process, which has made it. */
export async function openBench(additional: readonly string[] = [], given?: string) {
  const place = given ?? (await mkdtemp(join(tmpdir(), 'snapshots-')))
  const workdir = join(place, 'work')
  await mkdir(workdir, { recursive: true })
  const directories = additional.map((name) => join(place, name))
  for (const directory of directories) await mkdir(directory, { recursive: true })
  const git = findGit()
  if (git === undefined) throw new Error('these tests need git')
  const store = new GitStore(join(place, 'store'), git)
  const unfinished = new UnfinishedFiles(join(place, 'unfinished'))
  const hidden = new Set<string>()
  let timeout = new AbortController().signal
  const openLooks = () =>
    new WorkdirLooks({
      store,
      keys: { keyOf: async (path) => path },
      roots: () => [workdir, ...directories],
      readShown: async () => (path) => {
        bench.onName(path)
        return !hidden.has(path)
      },
      signal: new AbortController().signal,
      timeout: () => timeout,
    })
  let looks = openLooks()
  const bench = {
    place,
    workdir,
    store,
    hidden,
    look: () => looks.look(),
    /** Called with the path of each name that is looked at. */
    onName: (_path: string) => {},
    /** Ends looks that begin from now on when it is aborted. */
    limitTime: (signal: AbortSignal) => void (timeout = signal),
    /** As after a restart of the server; without `saves`, after a crash. */
    async reopen({ saves = true } = {}): Promise<void> {
      if (saves) await looks.save()
      looks = openLooks()
    },
    async keep(id: string): Promise<WrittenTrees> {
      const look = await looks.look()
      await keepSnapshot(store, id, look.written.commit)
      return look
    },
    /** `meanwhile`: what somebody else does once the plan is made. */
    async restore(commit: string, meanwhile: () => void = () => {}) {
      const plans = await planRestore((await looks.look()).trees, await readSnapshot(store, commit))
      meanwhile()
      const tools = { store, unfinished, mayWrite: (path: string) => !hidden.has(path) }
      const restored = []
      for (const plan of plans) restored.push(await applyRestore(plan, tools))
      return { plans, failed: restored.flatMap(({ failed }) => failed) }
    },
    [Symbol.asyncDispose]: () => removeAll(place),
  }
  return bench
}
