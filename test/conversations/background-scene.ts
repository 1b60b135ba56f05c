/** A run that ends while a subagent of it works on. */
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, gate, setBench } from './fixtures.ts'

/** A conversation whose first run leaves a subagent in the background, which waits in the tool `Slow`. */
export async function setBackground() {
  const slow = gate('Slow')
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('through') ? { text: 'It ran.' } : { calls: [call('Slow')] }
    if (text.includes('It ran.')) return { text: 'Done.' }
    return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [slow.tool, ...(names.includes('Task') ? [createTask(subagents)] : [])],
  }
  const bench = await setBench({ deps, script })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const conversation = await bench.converse({ agents, permission_mode: 'default', allowed_tools: ['Slow', 'Task'] })
  return { conversation, slow, [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose]() }
}
