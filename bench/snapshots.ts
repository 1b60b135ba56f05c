/** Snapshots of a workdir of 10,000 files and 100 MB, next to `git add -A && git write-tree` of the same tree, in turn. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findGit } from '../src/workspace/git/run-git.ts'
import { GitStore } from '../src/workspace/snapshots/git-store.ts'
import { keepLooks } from '../src/workspace/snapshots/stored-snapshots.ts'
import { WorkdirLooks } from '../src/workspace/snapshots/workdir-looks.ts'
import { makeTree } from './snapshot-tree.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

type Size = {
  readonly files: number
  /** Bytes of one file, about. */
  readonly bytes: number
  readonly rounds: number
  readonly firstRounds: number
}

const PROJECT: Size = { files: 10_000, bytes: 10_000, rounds: 7, firstRounds: 3 }
const LARGE: Size = { files: 100_000, bytes: 1000, rounds: 3, firstRounds: 1 }
/** Files are read again when they have changed within the resolution of their times. */
const SETTLED_MS = 200
/** The kernel counts in hundredths of a second. */
const MS_PER_TICK = 10

export const benchSnapshots = async (): Promise<Row[]> => [...(await measure(PROJECT)), ...(await measure(LARGE))]

async function measure({ files, bytes, rounds, firstRounds }: Size): Promise<Row[]> {
  const git = findGit()
  if (git === undefined) throw new Error('this benchmark needs git')
  const home = await mkdtemp(join(tmpdir(), 'bench-snapshots-'))
  const [workdir, plain] = [join(home, 'work'), join(home, 'plain')]
  try {
    await makeTree(workdir, files, bytes)
    const store = new GitStore(join(home, 'store'), git)
    const openLooks = () =>
      new WorkdirLooks({
        store,
        keys: { keyOf: async (path) => path },
        roots: () => [workdir],
        readShown: async () => () => true,
        signal: new AbortController().signal,
        timeout: () => new AbortController().signal,
      })
    let looks = openLooks()
    const env = { ...process.env, GIT_DIR: plain, GIT_WORK_TREE: workdir }
    const own = () => looks.look()
    const bare = () => {
      execFileSync(git, ['add', '-A'], { env, cwd: workdir })
      execFileSync(git, ['write-tree'], { env, cwd: workdir })
    }
    await wait(SETTLED_MS)
    const first = await alternating(firstRounds, own, bare, async () => {
      await store.remove()
      await rm(plain, { recursive: true, force: true })
      execFileSync(git, ['init', '-q', '--bare', plain])
      looks = openLooks()
    })
    await wait(SETTLED_MS)
    await own()
    const unchanged = await alternating(rounds, own, bare, async () => {})
    const changed = await alternating(rounds, own, bare, async (round) => {
      for (let file = 0; file < 10; file++) await writeFile(join(workdir, 'd1', `changed-${file}`), `${round}`)
    })
    const { written } = await looks.look()
    await keepLooks(store, [written.commit])
    await store.run(['repack', '-a', '-d', '-q'])
    const treeName = execFileSync(git, ['write-tree'], { env, cwd: workdir, encoding: 'utf8' }).trim()
    const names = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.com']
    const commit = execFileSync(git, [...names, 'commit-tree', '-m', 'bench', treeName], {
      env,
      encoding: 'utf8',
    }).trim()
    execFileSync(git, ['update-ref', 'refs/heads/bench', commit], { env })
    execFileSync(git, ['gc', '-q', '--prune=now'], { env })
    const [packed, gc] = [await sizeOfPacks(store.directory), await sizeOfPacks(plain)]
    const tree = `${files} files, ${(files * bytes) / 1e6} MB`
    return [
      row(`${tree}: the first snapshot, CPU`, first),
      row(`${tree}: the same tree again, CPU`, unchanged),
      row(`${tree}: ten files changed, CPU`, changed),
      [
        `${tree}: the packed store`,
        `${(packed / 1e6).toFixed(1)} MB`,
        `${(packed / gc).toFixed(2)} of what \`git gc\` leaves`,
      ],
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function sizeOfPacks(repository: string): Promise<number> {
  const directory = join(repository, 'objects', 'pack')
  const sizes = (await readdir(directory)).map(async (name) => (await stat(join(directory, name))).size)
  return (await Promise.all(sizes)).reduce((a, b) => a + b, 0)
}

async function alternating(
  rounds: number,
  own: () => unknown,
  bare: () => unknown,
  change: (round: number) => Promise<void>,
) {
  const times: (readonly [number, number])[] = []
  for (let round = 0; round < rounds; round++) {
    await change(round)
    times.push([await cpuOf(own), await cpuOf(bare)])
  }
  return [median(times.map(([ours]) => ours)), median(times.map(([, theirs]) => theirs))] as const
}

/** Milliseconds of this process and its children. */
async function cpuOf(work: () => unknown): Promise<number> {
  const [before, children] = [process.cpuUsage(), await cpuOfChildren()]
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 + (await cpuOfChildren()) - children
}

async function cpuOfChildren(): Promise<number> {
  const fields = (await readFile('/proc/self/stat', 'utf8')).split(') ')[1]!.split(' ')
  return (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK
}

const row = (what: string, [own, bare]: readonly [number, number]): Row => [
  what,
  `${own.toFixed(0)} ms`,
  `${(own / bare).toFixed(2)} of the ${bare.toFixed(0)} ms of \`git add -A && git write-tree\``,
]
