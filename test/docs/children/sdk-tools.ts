/** An example of docs/sdk.md. */
import { run, tool } from '../../../src/index.ts'
import { z } from 'zod'

const lookUp = tool('look_up_order', 'Returns an order by its number.', { number: z.string() }, async ({ number }) => ({
  number,
  status: 'shipped',
}))

const { finalText } = await run({ prompt: 'Where is order 17?', options: { tools: ['Read', lookUp] } })
console.log(finalText)
