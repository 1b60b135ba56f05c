/**
 * An agent in a script: it reads a file, calls a function of this program, and its events are printed as they happen.
 * Usage: node examples/embed.ts DIRECTORY. The model is that of LLM_MODEL, LLM_API_KEY and LLM_BASE_URL.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { query, tool } from 'agent-server'
import { z } from 'zod'

const [, , directory = '.'] = process.argv

const priceOf = tool('PriceOf', 'Returns the price of an article in euros.', { article: z.string() }, ({ article }) => {
  const prices: Record<string, number> = { pen: 2, book: 12 }
  return prices[article] ?? `There is no ${article}. There are: ${Object.keys(prices).join(', ')}.`
})

const prompt = 'order.txt has one article a line. Write the sum of their prices to total.txt.'
const options = { cwd: directory, tools: ['Bash', priceOf], permissionMode: 'bypass' } as const

for await (const event of query({ prompt, options })) {
  switch (event.type) {
    case 'ToolUse':
      console.log(`${event.name} ${JSON.stringify(event.input)}`)
      break
    case 'ErrorEvent':
      console.error(event.message)
      process.exitCode = 1
      break
    case 'Result':
      console.log(event.final_text)
      break
    default: // The other events are not printed.
  }
}
console.log(`total.txt: ${(await readFile(join(directory, 'total.txt'), 'utf8')).trim()}`)
