/** The calls of a request for permission: each with its whole input, and with what others have decided about it. */
import type { OpenRequestOf } from '../../contract/request.ts'
import { texts } from '../state/preferences.ts'
import { asText, visible } from '../text/visible.ts'
import { count } from './amounts.ts'

type AskedCall = OpenRequestOf<'permission'>['payload']['tool_uses'][number]
/** A longer input must be opened before it can be decided; what others have decided needs nobody to read it. */
const MAX_SHOWN_CHARS = 4000

export const isLong = (call: AskedCall): boolean => !call.decision && inputText(call).length > MAX_SHOWN_CHARS

type CallsProps = {
  readonly request: OpenRequestOf<'permission'>
  readonly unread: ReadonlySet<string>
  readonly onRead?: (id: string) => void
  readonly note?: string
}

export function Calls({ request, unread, onRead, note }: CallsProps) {
  return (
    <>
      {request.payload.tool_uses.map((call) => (
        <div class="asked" key={call.tool_use_id}>
          <p>
            <strong>{visible(call.name)}</strong>: <span class="quiet">{visible(call.reason)}</span>{' '}
            {call.decision && <span class="badge">{texts.value.decided[call.decision]}</span>}
          </p>
          <pre class="code" tabIndex={0} aria-label={visible(call.name)}>
            {visible(unread.has(call.tool_use_id) ? inputText(call).slice(0, MAX_SHOWN_CHARS) : inputText(call))}
          </pre>
          {unread.has(call.tool_use_id) && (
            <button type="button" class="link" onClick={() => onRead?.(call.tool_use_id)}>
              {texts.value.showAll(count(inputText(call).length))}
            </button>
          )}
        </div>
      ))}
      {note && <p class="quiet">{note}</p>}
    </>
  )
}

/** A call that only has a command is that command. */
function inputText({ input }: AskedCall): string {
  const fields: Readonly<Record<string, unknown>> = typeof input === 'object' && input !== null ? { ...input } : {}
  const [only, ...more] = Object.entries(fields)
  return only?.[0] === 'command' && more.length === 0 ? asText(only[1]) : asText(input)
}
