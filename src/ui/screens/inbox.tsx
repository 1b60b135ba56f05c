/** What needs a person, the oldest first, and what else goes on. */
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import { useLoaded, WhenLoaded } from '../parts/loaded.tsx'
import { ErrorBoundary } from '../parts/error-boundary.tsx'
import { Blank } from '../parts/blank.tsx'
import { cost } from '../parts/amounts.ts'
import { minute } from '../parts/now.ts'
import { RequestCard } from '../parts/request-card.tsx'
import { useSummaries } from '../parts/summary-pages.ts'
import { SummaryRow } from '../parts/summary-row.tsx'
import { countVersion, forPeople, howManyWait } from '../state/live.ts'
import { costsOf } from '../state/costs.ts'
import { texts } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { client, mayCreate } from '../state/session.ts'
import { short } from '../text/visible.ts'

export function Inbox() {
  const { inbox, needYou, nobodyWaits, untitled, loading, startAgent } = texts.value
  const requests = forPeople.value
  return (
    <section class="page">
      <h1>{inbox}</h1>
      {requests === undefined && <p class="quiet loading">{loading}</p>}
      {requests && requests.length > 0 && <p class="quiet">{needYou(howManyWait.value)}</p>}
      {requests?.length === 0 && (
        <Blank text={nobodyWaits}>
          <Today />
          {mayCreate() && (
            <a class="button" href={addressOf('new')}>
              {startAgent}
            </a>
          )}
        </Blank>
      )}
      {requests?.map(({ conversation_id, title, user_id, request }) => (
        <ErrorBoundary key={request.request_id}>
          <RequestCard conversationId={conversation_id} request={request}>
            <a class="plain" href={addressOf('c', conversation_id)}>
              {short(title ?? untitled)}
            </a>
            {user_id !== undefined && <span class="quiet">{short(user_id)}</span>}
          </RequestCard>
        </ErrorBoundary>
      ))}
      <AtWork />
    </section>
  )
}

function Today() {
  const today = useLoaded((signal) => costsOf(1, {}, signal), [], minute.value)
  return (
    <WhenLoaded
      of={today}
      draw={({ total }) => (
        <p>
          <a href={addressOf('costs')}>{texts.value.todayCosts(cost(total.cost_usd))}</a>
        </p>
      )}
    />
  )
}

const RUNNING = { status: ['running'] } as const
const MOST_AT_WORK = 50

function AtWork() {
  const { rows, fault, again } = useSummaries(RUNNING, MOST_AT_WORK)
  return (
    <WhenLoaded
      of={{ value: rows, fault, again }}
      draw={(items) =>
        items.length > 0 && (
          <>
            <h2>{items.length < MOST_AT_WORK ? wordsOf(items) : <AllAtWork />}</h2>
            <div class="rows" role="list">
              {items.map((summary) => (
                <div role="listitem" key={summary.id}>
                  <ErrorBoundary>
                    <SummaryRow summary={summary} />
                  </ErrorBoundary>
                </div>
              ))}
            </div>
          </>
        )
      }
    />
  )
}

function wordsOf(items: readonly ConversationSummary[]): string {
  const { running, waitForPlace } = texts.value
  const queuedCount = items.filter(({ queued }) => queued).length
  return [running(items.length - queuedCount), ...(queuedCount > 0 ? [waitForPlace(queuedCount)] : [])].join(', ')
}

/** There are more than the rows below. */
function AllAtWork() {
  const { value } = useLoaded(
    (signal) => client().conversations.count({ status: ['running'] }, { signal }),
    [],
    countVersion.value,
  )
  return <>{texts.value.running(value?.count ?? MOST_AT_WORK)}</>
}
