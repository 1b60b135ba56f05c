/** What a step of the agent costs beside a bare loop: time, CPU, in long runs, and in many conversations at once. */
import type { ModelProcess } from './model-process.ts'
import { stepTimes } from './model-process.ts'
import type { Sides, Subject } from './subjects.ts'
import { withSubjects } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 9
/** Until both are compiled: what a process costs in its first minute is told by the benchmark of the start. */
const WARM_UP_ROUNDS = 8
const STEPS = 50
const LONG_RUN = 500
const LONG_ROUNDS = 5
const PARALLEL = 8
const PARALLEL_STEPS = 25

export const benchSteps = (): Promise<Row[]> =>
  withSubjects(async (sides, model) => [
    ...(await overhead(sides, model)),
    ...(await growth(sides, model)),
    await parallel(sides),
  ])

async function overhead(sides: Sides, model: ModelProcess): Promise<Row[]> {
  const [server, bare] = await inTurn(
    sides,
    ROUNDS,
    async (subject) => {
      const before = subject.cpuMs()
      const times = await timesOfRun(subject, model, STEPS)
      return { ms: median(times), cpu: (subject.cpuMs() - before) / STEPS }
    },
    WARM_UP_ROUNDS,
  )
  const [ms, bareMs] = [server, bare].map((rounds) => median(rounds.map((round) => round.ms))) as [number, number]
  const [cpu, bareCpu] = [server, bare].map((rounds) => median(rounds.map((round) => round.cpu))) as [number, number]
  return [
    [
      'a step of the agent: from the end of the answer to the next request',
      `${ms.toFixed(2)} ms`,
      of(ms, bareMs, 'ms'),
    ],
    ['CPU of a step', `${cpu.toFixed(2)} ms`, of(cpu, bareCpu, 'ms')],
  ]
}

/** A bare loop grows with the bodies it sends, as any agent must: what it shows is the share that is not ours. */
async function growth(sides: Sides, model: ModelProcess): Promise<Row[]> {
  const [server, bare] = await inTurn(sides, LONG_ROUNDS, async (subject) => {
    const times = await timesOfRun(subject, model, LONG_RUN)
    return median(times.slice(-STEPS)) / median(times.slice(0, STEPS))
  })
  const [own, its] = [median(server), median(bare)]
  const what = `the last ${STEPS} of ${LONG_RUN} steps by the first ${STEPS}`
  return [[what, own.toFixed(2), `bare loop: ${its.toFixed(2)}`]]
}

async function parallel(sides: Sides): Promise<Row> {
  const [server, bare] = await inTurn(sides, ROUNDS, async (subject) => {
    const ids = await Promise.all(Array.from({ length: PARALLEL }, () => subject.create()))
    const began = performance.now()
    await Promise.all(ids.map((id) => subject.run(id, { steps: PARALLEL_STEPS })))
    return (PARALLEL * PARALLEL_STEPS * 1000) / (performance.now() - began)
  })
  const [own, its] = [median(server), median(bare)]
  return [`${PARALLEL} conversations at once`, `${own.toFixed(0)} steps/s`, of(own, its, 'steps/s', 0)]
}

async function timesOfRun(subject: Subject, model: ModelProcess, steps: number): Promise<number[]> {
  const id = await subject.create()
  await model.exchanges()
  await subject.run(id, { steps })
  return stepTimes(await model.exchanges())
}

/** What else the machine does then hits both alike. The first rounds of each warm up. */
export async function inTurn<T>(
  { server, bare }: Sides,
  rounds: number,
  measure: (subject: Subject) => Promise<T>,
  warmUps = 1,
) {
  const results: [T[], T[]] = [[], []]
  for (let round = 0; round < warmUps + rounds; round++) {
    results[0].push(await measure(server))
    results[1].push(await measure(bare))
  }
  return results.map((all) => all.slice(warmUps)) as [T[], T[]]
}

export const of = (own: number, its: number, unit: string, digits = 2) =>
  `${(own / its).toFixed(2)} of the bare loop's ${its.toFixed(digits)} ${unit}`
