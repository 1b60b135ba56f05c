/** An example of docs/sdk.md. */
import { run } from '../../../src/index.ts'

const { finalText, stopReason, steps } = await run({
  prompt: 'Say hello.',
  options: { model: process.env['LLM_MODEL'], apiKey: process.env['LLM_API_KEY'], maxSteps: 20 },
})
console.log(finalText, stopReason, steps)
