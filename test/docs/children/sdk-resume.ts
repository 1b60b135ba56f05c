/** docs/sdk.md: a session that continues without a prompt. */
import { run } from '../../../src/index.ts'

const waiting = await run({
  prompt: 'Make a directory.',
  options: { tools: ['Bash'], permissionMode: 'default' },
})
console.log(waiting.stopReason) // waiting_for_confirmation
const done = await run({
  options: { resume: waiting.sessionId, canUseTool: () => ({ behavior: 'allow' }) },
})
console.log(done.stopReason)
