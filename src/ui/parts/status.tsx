/** The status of a conversation by shape and word as well as by colour. */
import type { Status } from '../../contract/events/status.ts'
import { texts } from '../state/preferences.ts'

/** A run that waits for a place is running for the server, and does nothing. */
type ShownStatus = Status | 'queued'

const SHAPES: Readonly<Record<ShownStatus, string>> = {
  idle: '○',
  queued: '◔',
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
  const shownStatus: ShownStatus = queued ? 'queued' : status
  return (
    <span class={`status status-${shownStatus}`}>
      <span class="shape" aria-hidden="true">
        {SHAPES[shownStatus]}
      </span>
      <span class="word">{texts.value.status[shownStatus]}</span>
    </span>
  )
}
