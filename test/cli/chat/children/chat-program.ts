/** The chat as a program, for tests: with a conversation of a server that runs already. */
import { startChat } from '../../../../src/cli/chat/start-chat.ts'
import type { ChatSettings } from '../../../../src/cli/settings/chat-settings.ts'
import type { AgentServerClient } from '../../../../src/client/client.ts'
import { createClient } from '../../../../src/client/client.ts'

const { CHAT_URL = '', CHAT_KEY = '', CHAT_ID = '', CHAT_PROMPT, CHAT_MODEL = '', NO_COLOR } = process.env

const client: AgentServerClient = createClient({ baseUrl: CHAT_URL, apiKey: CHAT_KEY, maxRetries: 2 })
const conversation = client.conversation(CHAT_ID)
const view = await conversation.get()
process.on('SIGUSR2', () => crash())
const exitCode = await startChat({
  client,
  conversation,
  view,
  isResumed: view.last_seq > 1,
  createConversation: () =>
    client.conversations.create({
      llm_config: { model: 'scripted', base_url: CHAT_MODEL, api_key: 'scripted-model-key' },
    }),
  names: {},
  info: await client.info(),
  server: undefined,
  directory: process.cwd(),
  command: 'agent-server',
  historyPath: process.env['CHAT_HISTORY'],
  prompt: CHAT_PROMPT,
  maxSteps: undefined,
  forcesTool: false,
  permissionMode: view.state.permission_mode,
  color: !NO_COLOR,
  settings: JSON.parse(process.env['CHAT_SETTINGS'] ?? '{}') as ChatSettings,
  notices: [],
})
process.exit(exitCode)

function crash(): never {
  throw new Error('crashed on purpose')
}
