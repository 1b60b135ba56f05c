/** The agents of a server that this process reaches by its API. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import { NEVER, withinTime } from '../../lib/bounded-wait.ts'
import type { AgentSource, FoundAgent } from '../../protocols/mcp/agents.ts'
import type { ProtocolHost } from '../protocol/protocol-host.ts'

/** `directory` is that of new agents; undefined: the server makes a directory. */
export function clientAgents({ client, create }: ProtocolHost, directory: string | undefined): AgentSource {
  return {
    async start({ prompt, workdir }) {
      const { id } = await create(workdir ?? directory, undefined)
      const conversation = client.conversation(id)
      await conversation.send(prompt)
      return agentOf(conversation)
    },
    find: async (id) => agentOf(client.conversation(id)),
  }
}

/** How long the end of a run that has ended is looked for, in milliseconds: another run may have begun. */
const ANSWER_MS = 5000
const NOTHING = { result: undefined, error: undefined }

function agentOf(conversation: ConversationHandle): FoundAgent {
  return {
    id: conversation.id,
    async look() {
      const { status, last_seq: lastSeq } = await conversation.get()
      const { items: requests } = await conversation.requests.list()
      const isOver = status !== 'running'
      const look = (signal: AbortSignal) => conversation.wait({ signal })
      const { result, error } = isOver ? await withinTime(ANSWER_MS, NEVER, look).catch(() => NOTHING) : NOTHING
      return { status, lastSeq, requests, ...(result && { result }), ...(error && { error }) }
    },
    events: (after, signal) => conversation.events({ after, signal }),
    ends: (after_seq) => conversation.listEvents({ types: ['StatusUpdate', 'Result', 'ErrorEvent'], after_seq }),
    async eventAt(seq) {
      const { items } = await conversation.listEvents({ after_seq: seq - 1, limit: 1 })
      return items.find((event) => event.seq === seq)
    },
    send: async (prompt) => await conversation.send(prompt),
    answer: async (requestId, answer) => await conversation.requests.answer(requestId, answer),
    interrupt: async () => await conversation.pause({ interrupt: true }),
  }
}
