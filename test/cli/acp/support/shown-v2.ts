/** What an editor of version 2 shows of a session: entities that updates patch, in the order in which they came first. */
import type { SessionUpdate } from '@agentclientprotocol/sdk/experimental/v2'

type Shown = { readonly kind: string; readonly id: string; readonly text?: string; [field: string]: unknown }

const WHOLE = { user_message: 'user', agent_message: 'message', agent_thought: 'thought' } as const
const CHUNKS = { user_message_chunk: 'user', agent_message_chunk: 'message', agent_thought_chunk: 'thought' } as const

const textIn = (content: unknown): string =>
  [content]
    .flat()
    .map((block) => (block as { text?: string }).text ?? '')
    .join('')

/** Messages that were taken back are not shown. */
export function shownInV2(updates: readonly SessionUpdate[]): Shown[] {
  const shown = new Map<string, Shown>()
  const patch = (kind: string, id: string, change: (known: Shown) => object) => {
    const known = shown.get(`${kind} ${id}`) ?? { kind, id }
    shown.set(`${kind} ${id}`, { ...known, ...change(known) })
  }
  for (const update of updates as readonly (SessionUpdate & Record<string, unknown>)[]) {
    const { sessionUpdate: type } = update
    if (type in WHOLE) {
      const text = textIn(update['content'] ?? [])
      patch(WHOLE[type as keyof typeof WHOLE], String(update['messageId']), () => ({ text }))
    } else if (type in CHUNKS) {
      const text = textIn(update['content'])
      const id = String(update['messageId'])
      patch(CHUNKS[type as keyof typeof CHUNKS], id, (known) => ({ text: (known.text ?? '') + text }))
    } else if (type === 'tool_call_update') {
      const { sessionUpdate: _, kind: category, ...call } = update
      patch('call', String(update['toolCallId']), () => ({ ...call, ...(category !== undefined && { category }) }))
    } else if (type === 'plan_update') patch('plan', '', () => ({ plan: update['plan'] }))
  }
  return [...shown.values()].filter(({ text }) => text !== '')
}
