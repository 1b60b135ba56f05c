/** What a step of the agent costs compared with a bare loop: time, CPU, in long runs, and in many conversations at once. */
import type { ModelProcess, Plan } from './model-process.ts'
import { stepTimes } from './model-process.ts'
import type { Sides, Subject } from './subjects.ts'
import { withSubjects } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 9
/** These rounds compile both: the benchmark of the start measures the first minute of a process. */
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
  const measured = await enqueue(
    sides,
    ROUNDS,
    async (subject) => {
      const before = subject.cpuMs()
      const times = await timesOfRun(subject, model, STEPS)
      return { ms: median(times), cpu: (subject.cpuMs() - before) / STEPS }
    },
    WARM_UP_ROUNDS,
  )
  const [ms, cpu] = (['ms', 'cpu'] as const).map((field) =>
    mapSides(measured, (rounds) => median(rounds.map((round) => round[field]))),
  ) as [Record<keyof Sides, number>, Record<keyof Sides, number>]
  const step = 'a step of the agent: from the end of the answer to the next request'
  return [
    [step, `${ms.server.toFixed(2)} ms`, of(ms.server, ms.bare, 'ms')],
    ['CPU of a step', `${cpu.server.toFixed(2)} ms`, of(cpu.server, cpu.bare, 'ms')],
    [step, `${ms.server.toFixed(2)} ms`, ofDurable(ms.server, ms.durable)],
    ['CPU of a step', `${cpu.server.toFixed(2)} ms`, ofDurable(cpu.server, cpu.durable)],
    [step, `${ms.server.toFixed(2)} ms`, ofOpenai(ms.server, ms.openai)],
    ['CPU of a step', `${cpu.server.toFixed(2)} ms`, ofOpenai(cpu.server, cpu.openai)],
  ]
}

/** A bare loop grows with the bodies it sends, as any agent must: what it shows is the share that is not ours. */
async function growth(sides: Sides, model: ModelProcess): Promise<Row[]> {
  const { server, bare } = await enqueue(withoutDurable(sides), LONG_ROUNDS, async (subject) => {
    const times = await timesOfRun(subject, model, LONG_RUN)
    return median(times.slice(-STEPS)) / median(times.slice(0, STEPS))
  })
  const [own, its] = [median(server), median(bare)]
  const what = `the last ${STEPS} of ${LONG_RUN} steps by the first ${STEPS}`
  return [[what, own.toFixed(2), `bare loop: ${its.toFixed(2)}`]]
}

async function parallel(sides: Sides): Promise<Row> {
  const { server, bare } = await enqueue(withoutDurable(sides), ROUNDS, async (subject) => {
    const ids = await Promise.all(Array.from({ length: PARALLEL }, () => subject.create()))
    const began = performance.now()
    await Promise.all(ids.map((id) => subject.run(id, { steps: PARALLEL_STEPS })))
    return (PARALLEL * PARALLEL_STEPS * 1000) / (performance.now() - began)
  })
  const [own, its] = [median(server), median(bare)]
  return [`${PARALLEL} conversations at once`, `${own.toFixed(0)} steps/s`, of(own, its, 'steps/s', 0)]
}

export async function timesOfRun(
  subject: Subject,
  model: ModelProcess,
  steps: number,
  plan: Plan = {},
): Promise<number[]> {
  const id = await subject.create()
  await model.exchanges()
  await subject.run(id, { ...plan, steps })
  return stepTimes(await model.exchanges())
}

/** What else the machine does then hits all alike. The first rounds of each warm up. */
export async function enqueue<Name extends string, T>(
  subjects: Readonly<Record<Name, Subject>>,
  rounds: number,
  measure: (subject: Subject) => Promise<T>,
  warmUps = 1,
): Promise<Record<Name, T[]>> {
  const results = mapSides(subjects, (): T[] => [])
  for (let round = 0; round < warmUps + rounds; round++)
    for (const name of Object.keys(subjects) as Name[]) results[name].push(await measure(subjects[name]))
  return mapSides(results, (all) => all.slice(warmUps))
}

const mapSides = <Name extends string, From, To>(
  sides: Readonly<Record<Name, From>>,
  map: (side: From) => To,
): Record<Name, To> =>
  Object.fromEntries(Object.entries<From>(sides).map(([name, side]) => [name, map(side)])) as Record<Name, To>

const withoutDurable = ({ server, bare }: Sides) => ({ server, bare })

export const of = (own: number, its: number, unit: string, digits = 2) =>
  `${(own / its).toFixed(2)} of the bare loop's ${its.toFixed(digits)} ${unit}`

const ofDurable = (own: number, its: number) =>
  `${(own / its).toFixed(2)} of a durable bare loop's ${its.toFixed(2)} ms, with one bash and as many syncs`

export const ofOpenai = (own: number, its: number) =>
  `${(own / its).toFixed(2)} of a durable bare loop's ${its.toFixed(2)} ms that asks through the \`openai\` package`
