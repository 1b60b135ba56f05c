/** How a person who looks elsewhere learns that an agent needs them: the title, the icon, and notifications on wish. */
import { effect, untracked } from '@preact/signals'
import { titleOf } from '../../contract/events/call-title.ts'
import type { WaitingRequest } from '../../contract/request.ts'
import { decisionOf, hasForm, titleOfRequest } from '../../contract/requests/request-forms.ts'
import { short, visible } from '../text/visible.ts'
import { forPeople, howManyWait, onRunEnd } from './live.ts'
import type { EndedRun } from './live.ts'
import { mutedConversations } from './muted.ts'
import { hidesContent, notifications, texts } from './preferences.ts'
import { closeNotifications, notifyOnce, showSight } from './notifications.ts'
import { client, messageOf } from './session.ts'

const NAME = 'agent-server'

const DOTTED = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3557d6"/><circle cx="23" cy="9" r="8" fill="#ffb14a"/></svg>',
)}`

/** Returns what ends it. */
export function callForAttention(): () => void {
  let seenIds: ReadonlySet<string> | undefined
  const stopRequests = effect(() => {
    const requests = forPeople.value
    document.title = howManyWait.value === '' ? NAME : `(${howManyWait.value}) ${NAME}`
    if (!requests) return
    const before = seenIds
    seenIds = new Set(requests.map(({ request }) => request.request_id))
    showDot(requests.length > 0)
    if (!before) return
    for (const waiting of requests)
      if (!before.has(waiting.request.request_id)) untracked(() => notifyOfRequest(waiting))
  })
  const callNoMore = () => {
    document.title = NAME
    showDot(false)
    closeNotifications()
  }
  const ends = [stopRequests, onRunEnd(notifyOfEnd), showSight(), callNoMore]
  return () => ends.forEach((end) => end())
}

/** The icon of the tab gets a dot. */
function showDot(isShown: boolean): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (!link) return
  link.dataset['plain'] ??= link.href
  link.href = isShown ? DOTTED : link.dataset['plain']
}

function notifyOfRequest({ conversation_id, title, request }: WaitingRequest): void {
  const { inLanguage, needsYou } = texts.value
  notifyUnlessMuted(request.request_id, conversation_id, needsYou, async () => ({
    title: title ?? needsYou,
    body: `${inLanguage(titleOfRequest(request))}: ${visible(questionOf(request))}`,
  }))
}

function notifyOfEnd({ id, conversation_id, status }: EndedRun): void {
  const words = texts.value.agentEnded(texts.value.status[status])
  notifyUnlessMuted(id, conversation_id, words, async () => {
    const { title, preview } = await client().conversation(conversation_id).get()
    return { title: title ?? preview ?? words, body: words }
  })
}

/** `words` say nothing of the conversation: they are all that is shown without content. */
function notifyUnlessMuted(
  tag: string,
  conversationId: string,
  words: string,
  describe: () => Promise<{ readonly title: string; readonly body: string }>,
): void {
  if (notifications.value === 'off' || mutedConversations.value.has(conversationId)) return
  const isHidden = hidesContent.value === 'on'
  const content = async () => {
    const few = { title: words, body: '' }
    const { title, body } = isHidden ? few : await describe().catch(() => few)
    return { tag, conversationId, title: short(title), body }
  }
  // Without a notification, it is still in the list.
  notifyOnce(tag, content).catch((error: unknown) => void messageOf(error))
}

function questionOf(request: WaitingRequest['request']): string {
  if (hasForm(request, 'calls'))
    return request.payload.tool_uses.map(({ name, input }) => `${name} ${titleOf(name, input)}`.trim()).join(', ')
  if (hasForm(request, 'questions')) return request.payload.questions.map(({ question }) => question).join(' ')
  return hasForm(request, 'decision') ? decisionOf(request).short : ''
}
