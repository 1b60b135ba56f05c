import type { McpServer } from '@modelcontextprotocol/server'
import { acceptedContent, completable, inputRequired } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { IMAGE } from './tools.ts'

const says = (text: string) => ({ role: 'user' as const, content: { type: 'text' as const, text } })

export function addPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { description: 'A simple prompt' }, async () => ({
    messages: [says('This is a simple prompt for testing.')],
  }))
  const complete = (value: string) => ['paris', 'park', 'party'].filter((each) => each.startsWith(value))
  const argsSchema = z.object({ arg1: completable(z.string(), complete), arg2: z.string() })
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'A prompt with arguments', argsSchema },
    async ({ arg1, arg2 }) => ({ messages: [says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A prompt with a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    async ({ resourceUri: uri }) => {
      const resource = { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }
      return {
        messages: [
          { role: 'user', content: { type: 'resource', resource } },
          says('Please process the embedded resource above.'),
        ],
      }
    },
  )
  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image' }, async () => ({
    messages: [{ role: 'user', content: IMAGE }, says('Please analyze the image above.')],
  }))
  const Context = z.object({ context: z.string() })
  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks first' }, async ({ mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, 'user_context', Context)
    if (given) return { messages: [says(given.context)] }
    const message = 'What context should the prompt use?'
    return inputRequired({
      inputRequests: { user_context: inputRequired.elicit({ message, requestedSchema: Context }) },
    })
  })
}
