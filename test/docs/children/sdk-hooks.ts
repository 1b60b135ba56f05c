/** An example of docs/sdk.md. */
import { run } from '../../../src/index.ts'

const { finalText } = await run({
  prompt: 'Make a directory.',
  options: {
    tools: ['Bash'],
    hooks: {
      PreToolUse: [
        {
          matcher: 'Bash',
          hooks: [
            ({ tool_input }) => {
              console.log('called with', tool_input)
              return {
                hookSpecificOutput: {
                  hookEventName: 'PreToolUse',
                  permissionDecision: 'deny',
                  permissionDecisionReason: 'Not on Sundays.',
                },
              }
            },
          ],
        },
      ],
    },
  },
})
console.log(finalText)
