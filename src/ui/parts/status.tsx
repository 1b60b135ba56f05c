/** The status of a conversation by shape and word as well as by colour. */
import type { Status } from '../../contract/events/status.ts'
import { texts } from '../state/preferences.ts'

const SHAPES: Readonly<Record<Status, string>> = {
  idle: '○',
  running: '◐',
  waiting_for_confirmation: '◆',
  waiting_for_input: '◆',
  waiting_for_client: '◇',
  paused: '‖',
  finished: '✓',
  error: '✕',
  cancelled: '–',
}

export function StatusMark({ status, queued }: { readonly status: Status; readonly queued?: boolean | undefined }) {
  const word = queued ? texts.value.status.queued : texts.value.status[status]
  return (
    <span class={`status status-${status}`}>
      <span class="shape" aria-hidden="true">
        {SHAPES[status]}
      </span>
      <span class="word">{word}</span>
    </span>
  )
}
