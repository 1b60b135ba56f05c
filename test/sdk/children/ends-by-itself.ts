/** A program that asks, leaves queries in every way, and then has nothing more to do. Prints what nobody handled. */
import { query, run, tool } from '../../../src/index.ts'

process.on('unhandledRejection', (reason) => process.stdout.write(`unhandled: ${String(reason)}\n`))
const print = (said: unknown) => void process.stdout.write(`${String(said)}\n`)
const { options } = JSON.parse(process.argv[2] ?? '{}')

/** More than a model says before it is stopped. */
const SLOW = `slow ${'words to say '.repeat(200)}`
const never = tool('never', 'Never returns.', {}, () => new Promise(() => {}))
const both = await Promise.all([run({ prompt: 'one', options }), run({ prompt: 'two', options })])
process.stdout.write(`${both.map(({ finalText }) => finalText).join(' ')}\n`)

for await (const event of query({ prompt: 'call never', options: { ...options, tools: [never] } }))
  if (event.type === 'RequestOpened') break

const abortController = new AbortController()
const aborted = query({ prompt: SLOW, options: { ...options, abortController } })
await aborted.next()
abortController.abort(new Error('aborted'))
await Array.fromAsync(aborted).catch(print)

async function* failing() {
  yield SLOW
  throw new Error('the prompt failed')
}
await run({ prompt: failing(), options }).catch(print)

const left = query({ prompt: SLOW, options })
const waiting = left.next().then(() => left.next())
await left.next()
await Promise.all([left.return(), left.return(), waiting])
query({ prompt: 'never begun', options })
process.stdout.write('end\n')
