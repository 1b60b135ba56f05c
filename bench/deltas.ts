/** How old a piece of the model's text is when subscribers have it, and whether they get all, compared with a bare loop. */
import type { Plan } from './model-process.ts'
import type { Subject } from './subjects.ts'
import { withSubjects } from './subjects.ts'
import { enqueue, of, ofOpenai } from './steps.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 5
const PIECES = 200
const GAP_MS = 5

export const benchDeltas = (): Promise<Row[]> =>
  withSubjects(async (all) => {
    const { durable: _, ...sides } = all
    // The first round compiles what handles a piece, on both sides.
    await enqueue(sides, 1, (subject) => agesOf(subject, 1, { pieces: 2000, gapMs: 1 }))
    const rows: Row[] = []
    for (const subscribers of [1, 10, 50]) {
      const { server, bare, openai } = await enqueue(sides, ROUNDS, (subject) =>
        agesOf(subject, subscribers, { pieces: PIECES, gapMs: GAP_MS }),
      )
      const lost = subscribers * PIECES * ROUNDS - server.flat().length
      const [own, its, throughOpenai] = [median(server.flat()), median(bare.flat()), median(openai.flat())]
      const what = `a piece of text from the model to ${subscribers === 1 ? 'a subscriber' : `${subscribers} subscribers`}`
      const measured = `${own.toFixed(2)} ms, ${lost} lost`
      rows.push([what, measured, of(own, its, 'ms')])
      rows.push([what, measured, ofOpenai(own, throughOpenai)])
    }
    return rows
  })

/** Milliseconds, of each piece at each subscriber. */
const agesOf = async (subject: Subject, subscribers: number, plan: Plan): Promise<number[]> =>
  (await deliver(subject, subscribers, plan)).ages

/** Has the model write that, and returns how old each piece was at each subscriber, and when the last one had the last. */
export async function deliver(subject: Subject, subscribers: number, plan: Plan) {
  const id = await subject.create()
  const ages: number[] = []
  let firstSent = Infinity
  let lastCame = 0
  const note = (text: string) => {
    lastCame = Number(process.hrtime.bigint()) / 1e6
    for (const [, sent] of text.matchAll(/\d+@([\d.]+);/g)) {
      ages.push(lastCame - Number(sent))
      firstSent = Math.min(firstSent, Number(sent))
    }
  }
  const closers = await Promise.all(Array.from({ length: subscribers }, () => subject.subscribe(id, note)))
  await subject.run(id, plan)
  await untilStill(() => ages.length)
  for (const close of closers) close()
  return { ages, ms: lastCame - firstSent }
}

/** The end of a run can arrive on another connection before the last piece. */
async function untilStill(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); await new Promise((resolve) => setTimeout(resolve, 100))) before = count()
}
