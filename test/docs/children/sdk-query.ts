/** An example of docs/sdk.md. */
import { query } from '../../../src/index.ts'

const asking = query({
  prompt: 'Which files are here?',
  options: { cwd: '.', tools: ['Bash'], permissionMode: 'plan', includePartialMessages: true },
})
for await (const event of asking) {
  if (event.type === 'AssistantDelta') process.stdout.write(event.text_delta ?? '')
  if (event.type === 'ToolUse') console.log(event.name, event.input)
  if (event.type === 'Result') console.log(`\n${event.stop_reason} after ${event.steps} steps`)
}
