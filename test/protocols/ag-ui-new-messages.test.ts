/** Which messages of a client a thread has already. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { keyOfMessage } from '../../src/protocols/ag-ui/ag-ui-event.ts'
import { newMessagesOf, userInputsOf } from '../../src/protocols/ag-ui/new-messages.ts'
import { createBodyHash } from '../../src/security/body-hash.ts'
import { setBench } from '../conversations/fixtures.ts'

const hashBody = createBodyHash(['key-material-of-the-tests'])

test('a message is looked for among the newest thousand of the thread', async () => {
  await using bench = await setBench()
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: 'key' }
  const { id } = await bench.manager.create(CreateConversation.parse({ llm_config }))
  const conversation = await bench.manager.open(id)
  const post = async (text: string) => {
    const mark = { key: keyOfMessage(text, undefined), ...hashBody('ag-ui message', [{ type: 'text', text }]) }
    await conversation.post({ message: text, run: false }, mark)
  }
  const input = { threadId: 'long', runId: 'run', messages: [{ id: 'old', role: 'user', content: 'old' }] }
  const isNew = async () => {
    const { toPost } = await newMessagesOf(conversation, { input, userInputs: userInputsOf(input), hashBody })
    return toPost.length > 0
  }
  await post('old')
  await Promise.all(Array.from({ length: 999 }, (_, at) => post(String(at))))
  expect(await isNew()).toBe(false)
  await post('one more')
  expect(await isNew()).toBe(true)
})
