/** Reads the files that calls change, to show at which lines. What cannot be read is shown without numbers. */
import type { ConversationHandle } from '../../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../../contract/conversation.ts'
import type { ChatState, LocalEvent } from '../state/chat-state.ts'
import type { Starts } from '../state/diff-numbers.ts'
import { filesToSearch, startsIn } from '../state/diff-numbers.ts'
import { approvalsIn } from '../state/pending.ts'
import type { ChatEvent } from '../state/reduce.ts'

/** Larger files are shown without numbers. */
const MAX_FILE_BYTES = 2 * 1024 * 1024
const MAX_FILES = 20

/** Searches for calls that wait before the change, and for others after it. Never throws. */
export async function findEdits(session: Session, event: ChatEvent): Promise<void> {
  if (event.type === 'ToolResult' && !event.is_error) {
    const call = session.state.items.findLast((item) => item.kind === 'call' && item.id === event.tool_use_id)
    if (call?.kind === 'call') await find(session, { ...call, side: 'after' })
  }
  if (event.type !== 'RequestOpened' && event.type !== 'Pending') return
  const waiting = session.state.requests.flatMap((request) =>
    request.kind === 'permission' ? approvalsIn(request) : [],
  )
  for (const { call } of waiting) await find(session, { ...call, id: call.tool_use_id, side: 'before' })
}

type Session = {
  readonly conversation: ConversationHandle
  readonly view: ConversationView
  readonly state: ChatState
  readonly dispatch: (event: LocalEvent) => void
}
type Edit = {
  readonly id: string
  readonly input: unknown
  readonly starts?: Starts | undefined
  readonly side: 'before' | 'after'
}

async function find(session: Session, { id, input, starts, side }: Edit): Promise<void> {
  const texts = new Map<string, string>()
  for (const path of [...filesToSearch(input, starts)].slice(0, MAX_FILES)) {
    const text = await readText(session.conversation, pathIn(session.view.workdir, path)).catch(() => undefined)
    if (text !== undefined) texts.set(path, text)
  }
  if (texts.size > 0)
    session.dispatch({ type: 'Located', id, starts: startsIn(input, (path) => texts.get(path), side) })
}

const pathIn = (workdir: string, path: string): string =>
  path.startsWith(`${workdir}/`) ? path.slice(workdir.length + 1) : path

async function readText({ files }: ConversationHandle, path: string): Promise<string | undefined> {
  const response = await files.get(path, { headers: { range: `bytes=0-${MAX_FILE_BYTES - 1}` } })
  return (await response.text()).replaceAll('\r\n', '\n')
}
