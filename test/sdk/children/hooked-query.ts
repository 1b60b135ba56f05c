/** A program with a function as a hook: `node hooked-query.ts '{"model":…}' PROMPT`. Prints the hook's calls and its answer. */
import { query } from '../../../src/index.ts'

const [options = '{}', prompt = 'hello'] = process.argv.slice(2)
const guard = ({ tool_input: input }: Record<string, unknown>) => {
  process.stdout.write(`asked ${JSON.stringify(input)}\n`)
  // A hook that never answers.
  if (prompt.includes('hang')) return new Promise(() => {})
  const decision = { permissionDecision: 'deny', permissionDecisionReason: `of ${process.pid}` }
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', ...decision } }
}
const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [guard] }] }
const asking = query({ prompt, options: { ...JSON.parse(options), tools: ['Bash'], hooks } })
for await (const event of asking)
  if (event.type === 'Result') process.stdout.write(`${asking.sessionId} ${event.final_text}\n`)
