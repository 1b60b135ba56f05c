/** What an editor shows of a session: chunks of a message as one, and updates of a call in the call. */
import type { SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk'

export type Shown = {
  readonly kind: 'user' | 'message' | 'thought' | 'call' | 'plan'
  readonly id: string
  text?: string
  call?: ToolCallUpdate
  readonly entries?: readonly unknown[]
}

const CHUNKS = { user_message_chunk: 'user', agent_message_chunk: 'message', agent_thought_chunk: 'thought' } as const

export function shownIn(updates: readonly SessionUpdate[]): Shown[] {
  const shown: Shown[] = []
  for (const update of updates) {
    switch (update.sessionUpdate) {
      case 'user_message_chunk':
      case 'agent_message_chunk':
      case 'agent_thought_chunk': {
        const [kind, id] = [CHUNKS[update.sessionUpdate], update.messageId ?? '']
        const text = update.content.type === 'text' ? update.content.text : update.content.type
        const known = shown.find((each) => each.kind === kind && each.id === id)
        if (known) known.text += text
        else shown.push({ kind, id, text })
        break
      }
      case 'tool_call':
      case 'tool_call_update': {
        const { sessionUpdate: _, ...call } = update
        const known = shown.find((each) => each.kind === 'call' && each.id === call.toolCallId)
        if (known) known.call = { ...known.call, ...call }
        else shown.push({ kind: 'call', id: call.toolCallId, call })
        break
      }
      case 'plan':
        shown.push({ kind: 'plan', id: '', entries: update.entries })
        break
      default:
    }
  }
  return shown
}
