/** A component with `useChat` of the AI SDK, whose agents are those of a server. */

/** The component has no key: it gets a short-lived one from the backend that serves it. */
export const useChatSnippet = (server: string): string => `import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'

const api = ${JSON.stringify(`${server}/ai/chat`)}

// Your backend makes the key: POST ${server}/keys with the user_id of its user, the scopes read, write and approve, and expires_at.
const headers = async () => ({ authorization: \`Bearer \${await (await fetch('/agent-key')).text()}\` })
const transport = new DefaultChatTransport({ api, headers, body: { profile: 'default' } })

/** \`messages\`: what GET \${api}/\${id}/messages returns. */
export function AgentChat({ id, messages: storedMessages }) {
  const { messages, sendMessage, addToolApprovalResponse, regenerate, status, error } = useChat({
    id,
    messages: storedMessages,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const stop = async () => await fetch(\`\${api}/\${id}/stop\`, { method: 'POST', headers: await headers() })
  const decide = (part, approved) => addToolApprovalResponse({ id: part.approval.id, approved })
  const send = (form) => sendMessage({ text: form.get('text') })
  return (
    <main>
      {messages.flatMap(({ id, role, parts }) =>
        parts.map((part, index) => (
          <section key={id + index}>
            {part.type === 'text' && \`\${role}: \${part.text}\`}
            {isToolUIPart(part) && <pre>{JSON.stringify(part.input)}</pre>}
            {isToolUIPart(part) && part.state === 'approval-requested' && (
              <>
                <button onClick={() => decide(part, true)}>Allow</button>
                <button onClick={() => decide(part, false)}>Deny</button>
              </>
            )}
          </section>
        )),
      )}
      {error && <p>{error.message}</p>}
      <form action={send}>
        <input name="text" required />
        <button disabled={status !== 'ready'}>Send</button>
      </form>
      <button onClick={stop}>Stop</button>
      <button onClick={() => regenerate()}>Again</button>
    </main>
  )
}
`
