/** How a person who looks elsewhere learns that an agent needs them: the title, the icon, and notifications on wish. */
import { effect } from '@preact/signals'
import type { WaitingRequest } from '../../contract/request.ts'
import { visible } from '../text/visible.ts'
import { forPeople } from './live.ts'
import { mutedConversations } from './muted.ts'
import { hidesContent, notifications, texts } from './preferences.ts'
import { show } from './route.ts'

const NAME = 'agent-server'
const MAX_TEXT = 200

const DOTTED = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3557d6"/><circle cx="23" cy="9" r="8" fill="#ffb14a"/></svg>',
)}`

/** Returns what ends it. */
export function callForAttention(): () => void {
  let seenIds: ReadonlySet<string> | undefined
  return effect(() => {
    const requests = forPeople.value
    document.title = requests && requests.length > 0 ? `(${requests.length}) ${NAME}` : NAME
    if (!requests) return
    const before = seenIds
    seenIds = new Set(requests.map(({ request }) => request.request_id))
    showDot(requests.length > 0)
    if (notifications.peek() === 'off' || !before || !document.hidden) return
    for (const waiting of requests)
      if (!before.has(waiting.request.request_id) && !mutedConversations.peek().has(waiting.conversation_id))
        notifyOf(waiting)
  })
}

/** The icon of the tab gets a dot. */
function showDot(isShown: boolean): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (!link) return
  link.dataset['plain'] ??= link.href
  link.href = isShown ? DOTTED : link.dataset['plain']
}

function notifyOf({ conversation_id, title, request }: WaitingRequest): void {
  if (Notification.permission !== 'granted') return
  const { needsYou, asks } = texts.value
  const isHidden = hidesContent.value === 'on'
  const body = isHidden ? '' : `${asks[request.kind]}: ${visible(questionOf(request))}`.slice(0, MAX_TEXT)
  const notification = new Notification(isHidden || title === undefined ? needsYou : visible(title), {
    body,
    tag: request.request_id,
  })
  notification.addEventListener('click', () => {
    window.focus()
    show('c', conversation_id)
  })
}

function questionOf(request: WaitingRequest['request']): string {
  switch (request.kind) {
    case 'permission':
      return request.payload.tool_uses.map(({ name }) => name).join(', ')
    case 'question':
    case 'elicitation':
      return request.payload.questions.map(({ question }) => question).join(' ')
    case 'network':
      return request.payload.host
    default:
      return ''
  }
}
