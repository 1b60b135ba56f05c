/** What the dashboard adds to the executable, and what it costs a server of which nobody opens it. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXECUTABLE, startServerProcess } from './server-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 21
const MOST_MB = 0.6

export async function benchDashboardSize(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-page-'))
  // Next to the other one, so that both are on the same disk.
  const bare = `${EXECUTABLE}.without-page`
  try {
    const build = join(import.meta.dirname, '../scripts/build.ts')
    execFileSync(process.execPath, [build, `--without-page=${bare}`], { stdio: ['ignore', 'ignore', 'inherit'] })
    const megabytes = (statSync(EXECUTABLE).size - statSync(bare).size) / 1e6
    const own: Started[] = []
    const others: Started[] = []
    // They take turns, also at being first, so that what else the machine does affects both; the first round warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      const isFirst = round % 2 === 0
      if (isFirst) own.push(await started(home, EXECUTABLE))
      others.push(await started(home, bare))
      if (!isFirst) own.push(await started(home, EXECUTABLE))
    }
    const compared = (field: keyof Started, unit: string): [string, string] => {
      const [its, without] = [own, others].map((all) => median(all.slice(1).map((one) => one[field]))) as [
        number,
        number,
      ]
      return [
        `${its.toFixed(1)} ${unit}`,
        `${(its / without).toFixed(3)} of the ${without.toFixed(1)} ${unit} without it`,
      ]
    }
    return [
      [
        'the dashboard in the executable',
        `${megabytes.toFixed(2)} MB`,
        `${(megabytes / MOST_MB).toFixed(2)} of ${MOST_MB} MB`,
      ],
      ['CPU of the start of a server with the dashboard', ...compared('cpuMs', 'ms')],
      ['resident memory of one, of which nobody opens it', ...compared('megabytes', 'MB')],
    ]
  } finally {
    await rm(bare, { force: true })
    await rm(home, { recursive: true, force: true })
  }
}

type Started = { readonly cpuMs: number; readonly megabytes: number }

async function started(home: string, executable: string): Promise<Started> {
  const { pid, megabytes, kill } = await startServerProcess(home, {}, { executable })
  const cpuMs = cpuMsOf(pid)
  await kill()
  return { cpuMs, megabytes }
}

/** What its threads have worked. */
function cpuMsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const nanoseconds = threads.map((id) =>
    Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]),
  )
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6
}
