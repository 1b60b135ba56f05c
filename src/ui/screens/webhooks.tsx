/** The callbacks of all conversations: those that fail first, why, when they are tried again, and what helps. */
import { useState } from 'preact/hooks'
import type { CallbackState, Delivery } from '../../contract/callback.ts'
import { Action } from '../parts/action.tsx'
import { moment } from '../parts/amounts.ts'
import { Blank } from '../parts/blank.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { notify } from '../parts/notices.tsx'
import { minute } from '../parts/now.ts'
import { texts } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { client, may } from '../state/session.ts'
import { short, visible } from '../text/visible.ts'

/** What is read of each of the two lists. */
const MOST = 500

export function Webhooks() {
  const { webhooks, failing, others, noFailures, noWebhooks, noneAtAll } = texts.value
  const [version, setVersion] = useState(0)
  const lists = useLoaded(
    async (signal) => ({ failing: await listStates(true, signal), others: await listStates(false, signal) }),
    [version],
    minute.value,
  )
  const again = () => setVersion((before) => before + 1)
  return (
    <section class="page">
      <h1>{webhooks}</h1>
      <WhenLoaded
        of={lists}
        draw={(foundStates) =>
          foundStates.failing.length + foundStates.others.length === 0 ? (
            <Blank text={noneAtAll}>
              <code>POST /conversations/{'{id}'}/callbacks</code>
            </Blank>
          ) : (
            <>
              <h2>{failing}</h2>
              {foundStates.failing.length === 0 && <p class="quiet">{noFailures}</p>}
              <States states={foundStates.failing} onChange={again} />
              <h2>{others}</h2>
              {foundStates.others.length === 0 && <p class="quiet">{noWebhooks}</p>}
              <States states={foundStates.others} onChange={again} />
            </>
          )
        }
      />
    </section>
  )
}

async function listStates(isFailing: boolean, signal: AbortSignal): Promise<CallbackState[]> {
  const foundStates: CallbackState[] = []
  // Pages can be short.
  for await (const state of client().conversations.callbacks({ failing: isFailing }, { signal })) {
    foundStates.push(state)
    if (foundStates.length === MOST) break
  }
  return foundStates
}

type StatesProps = { readonly states: readonly CallbackState[]; readonly onChange: () => void }

function States({ states, onChange }: StatesProps) {
  return (
    <ul class="plain">
      {states.map((state) => (
        <li key={state.callback.id} class="webhook entry">
          <State state={state} onChange={onChange} />
        </li>
      ))}
    </ul>
  )
}

function State({ state, onChange }: { readonly state: CallbackState; readonly onChange: () => void }) {
  const { callback, conversation_id: id, title, user_id, pending, failed } = state
  const { untitled, failingSince, nextAttempt, disabled, test, tryNow, enable } = texts.value
  const callbacks = client().conversation(id).callbacks
  const retry = () => callbacks.update(callback.id, { enabled: true }).then(onChange)
  return (
    <>
      <div class="actions">
        <strong class="as-written">{visible(callback.url)}</strong>
        {may('write') && (
          <span class="last actions">
            <Action act={() => testOf(state).finally(onChange)}>{test}</Action>
            {(!callback.enabled || callback.failing_since !== undefined) && (
              <Action act={retry}>{callback.enabled ? tryNow : enable}</Action>
            )}
          </span>
        )}
      </div>
      <p class="quiet">
        <a href={addressOf('c', id)}>{short(title ?? untitled)}</a>
        {user_id !== undefined && ` · ${short(user_id)}`}
        {callback.next_attempt_at !== undefined && ` · ${nextAttempt(moment(callback.next_attempt_at))}`}
      </p>
      {callback.failing_since !== undefined && <Fault text={failingSince(moment(callback.failing_since))} />}
      {!callback.enabled && <Fault text={disabled(visible(callback.disabled_reason ?? ''))} />}
      {pending && <p class="quiet">{whatFailed(pending)}</p>}
      <FailedDeliveries
        failed={failed}
        redeliver={(seq) => callbacks.redeliver(callback.id, { from_seq: seq }).then(onChange)}
      />
    </>
  )
}

const Fault = ({ text }: { readonly text: string }) => (
  <p class="fault">
    <span class="shape" aria-hidden="true">
      ✕
    </span>
    {text}
  </p>
)

type FailedProps = { readonly failed: readonly Delivery[]; readonly redeliver: (seq: number) => Promise<unknown> }

function FailedDeliveries({ failed, redeliver }: FailedProps) {
  const { skipped, deliverFrom } = texts.value
  if (failed.length === 0) return null
  return (
    <ul>
      {failed.map((delivery) => (
        <li key={delivery.id}>
          <span class="fault">{skipped}</span> {whatFailed(delivery)}{' '}
          {may('write') && (
            <Action class="link" act={() => redeliver(delivery.seq)}>
              {deliverFrom(delivery.seq)}
            </Action>
          )}
        </li>
      ))}
    </ul>
  )
}

function whatFailed({ seq, type, attempts, error = '', last_attempt_at }: Delivery): string {
  const what = texts.value.failedEvent(seq, visible(type), visible(error))
  return `${what} (${texts.value.attempts(attempts)}, ${moment(last_attempt_at)})`
}

async function testOf({ conversation_id, callback }: CallbackState): Promise<void> {
  const { delivered, notDelivered } = texts.value
  const { status, error = '' } = await client().conversation(conversation_id).callbacks.test(callback.id)
  const isFault = status === 'failed'
  notify(isFault ? notDelivered(error) : delivered, { isFault })
}
