/** What the server does now: runs at work, runs that wait for a place, and open streams. */
import { useLoaded, WhenLoaded } from '../parts/loaded.tsx'
import { count } from '../parts/amounts.ts'
import { now } from '../parts/now.ts'
import { texts } from '../state/preferences.ts'
import { client } from '../state/session.ts'

const READ_EVERY_MS = 2000

/** `runLimit`: runs that work at the same time, of all conversations. */
export function ActivityNow({ runLimit }: { readonly runLimit: number }) {
  const { activity, atWork, queuedRuns, openStreams, ofLimit } = texts.value
  const counts = useLoaded((signal) => client().activity({ signal }), [], Math.floor(now.value / READ_EVERY_MS))
  return (
    <>
      <h2>{activity}</h2>
      <WhenLoaded
        of={counts}
        draw={({ active_runs, queued_runs, streams: { sse, websocket } }) => (
          <dl class="sums" data-activity>
            <Fact name={atWork} value={ofLimit(count(active_runs), count(runLimit))} />
            <Fact name={queuedRuns} value={count(queued_runs)} />
            <Fact name={openStreams} value={count(sse + websocket)} />
          </dl>
        )}
      />
    </>
  )
}

export function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt class="quiet">{name}</dt>
      <dd class="lead bold number">{value}</dd>
    </div>
  )
}
