/** What snapshots add to the steps of an agent: to those that only read, and to those before which one is taken. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ModelProcess, Plan } from './model-process.ts'
import { startModel } from './model-process.ts'
import { makeTree } from './snapshot-tree.ts'
import { enqueue, timesOfRun } from './steps.ts'
import type { AgentServer, Subject } from './subjects.ts'
import { send, startAgentServer } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const FILES = 10_000
const FILE_BYTES = 1000
const READING = { steps: 50, rounds: 40, warmUps: 8 }
const WRITING = { steps: 8, rounds: 5, warmUps: 1 }
/** Snapshots are taken while the model answers. */
const THINK_MS = 500

export async function benchSnapshotSteps(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-snapshot-steps-'))
  try {
    await using model = await startModel()
    await using server = await startAgentServer(model.url)
    const sides: Record<'off' | 'on', Subject> = { off: server, on: server }
    for (const side of ['off', 'on'] as const) {
      const workdir = join(home, side)
      await makeTree(workdir, FILES, FILE_BYTES)
      const create = () => server.create(['Bash'], { workdir, file_checkpointing: side === 'on' })
      sides[side] = { ...server, create }
      // The first snapshot reads all files.
      await countSnapshots(sides[side], server, { steps: 1, writes: true })
    }
    await expectSnapshots(sides, server)
    const reading = await compare(sides, model, READING, {})
    const writing = await compare(sides, model, WRITING, { writes: true, thinkMs: THINK_MS })
    return [
      [
        'a step that only reads, with snapshots: CPU',
        `${reading.on.cpu.toFixed(2)} ms`,
        `${(reading.on.cpu / reading.off.cpu).toFixed(2)} of ${reading.off.cpu.toFixed(2)} ms without`,
      ],
      [
        `a step with a snapshot of ${FILES} files, where the model takes ${THINK_MS} ms`,
        `${writing.on.ms.toFixed(1)} ms`,
        `${(writing.on.ms - writing.off.ms).toFixed(1)} ms more than the ${writing.off.ms.toFixed(1)} ms without`,
      ],
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

type Amount = { readonly steps: number; readonly rounds: number; readonly warmUps: number }

async function compare(
  sides: Record<'off' | 'on', Subject>,
  model: ModelProcess,
  { steps, rounds, warmUps }: Amount,
  plan: Plan,
) {
  const measured = await enqueue(
    sides,
    rounds,
    async (subject) => {
      const before = subject.cpuMs()
      const ms = median(await timesOfRun(subject, model, steps, plan))
      return { ms, cpu: (subject.cpuMs() - before) / steps }
    },
    warmUps,
  )
  const of = (side: 'off' | 'on') => ({
    ms: median(measured[side].map(({ ms }) => ms)),
    // The kernel counts in hundredths of a second: one round is too short for it.
    cpu: measured[side].reduce((sum, { cpu }) => sum + cpu, 0) / measured[side].length,
  })
  return { off: of('off'), on: of('on') }
}

/** Throws if steps that read have snapshots, or steps that write have none: both sides would be the same. */
async function expectSnapshots({ on, off }: Record<'off' | 'on', Subject>, server: AgentServer): Promise<void> {
  const reading = await countSnapshots(on, server, { steps: 3 })
  const without = await countSnapshots(off, server, { steps: 3, writes: true })
  const writing = await countSnapshots(on, server, { steps: 3, writes: true })
  if (reading + without > 0 || writing < 3)
    throw new Error(`snapshots were taken at other times: ${[reading, without, writing].join()}`)
}

async function countSnapshots(subject: Subject, { url }: AgentServer, plan: Plan): Promise<number> {
  const id = await subject.create()
  await subject.run(id, plan)
  const page = await send(`${url}/conversations/${id}/events?types=WorkspaceSnapshot`)
  return (JSON.parse(page) as { items: unknown[] }).items.length
}
