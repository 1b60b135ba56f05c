/** An example of docs/sdk.md. */
import { run } from '../../../src/index.ts'

const { events } = await run({
  prompt: 'Make a directory.',
  options: {
    tools: ['Bash', 'AskUserQuestion'],
    allowedTools: ['Bash(git status:*)'],
    canUseTool: (name, input, { reason }) => {
      console.log(`${name} asks: ${reason}`)
      return JSON.stringify(input).includes('rm ')
        ? { behavior: 'deny', message: 'Delete nothing.' }
        : { behavior: 'allow' }
    },
    answerQuestions: ([first]) => (first ? { [first.question]: first.options[0]?.label ?? 'Yes' } : undefined),
  },
})
console.log(events.filter(({ type }) => type === 'RequestAnswered').length)
