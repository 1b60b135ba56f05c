/** Notifications of the desktop: one for each thing that happens, however many tabs of the page are open. */
import { remember, rememberedValue } from './remembered.ts'
import { show } from './route.ts'

/** `tag` names what happened. */
export type DesktopNotice = {
  readonly tag: string
  readonly conversationId: string
  readonly title: string
  readonly body: string
}

const MAX_TEXT = 200
/** Tags of former notifications, the newest last, so that other tabs do not show them again. */
const NOTIFIED = 'notified'
const MOST_TAGS = 200
const LOCKED_MS = 60_000
/** Each tab that somebody can see has this lock, shared with the others. */
const IN_SIGHT = 'agent-server in sight'

/** Calls `describe` in one tab only, and in none while somebody can see a tab. */
export async function notifyOnce(tag: string, describe: () => Promise<DesktopNotice>): Promise<void> {
  if (Notification.permission !== 'granted' || (await isInSight())) return
  if (await isFirstTab(tag)) notifyOf(await describe())
}

/** Another tab reads what this one has stored only some time later: until then, this one has a lock. */
const isFirstTab = (tag: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const take = async (lock: Lock | null) => {
      const tags = rememberedValue(NOTIFIED)?.split(' ') ?? []
      const isFirst = lock !== null && !tags.includes(tag)
      resolve(isFirst)
      if (!isFirst) return
      remember(NOTIFIED, [...tags, tag].slice(-MOST_TAGS).join(' '))
      await new Promise((release) => setTimeout(release, LOCKED_MS))
    }
    navigator.locks.request(`${NOTIFIED} ${tag}`, { ifAvailable: true }, take).catch(reject)
  })

const shownNotifications = new Set<Notification>()

/** Closes those that this tab has shownNotifications. */
export function closeNotifications(): void {
  for (const notification of shownNotifications) notification.close()
}

function notifyOf({ tag, conversationId, title, body }: DesktopNotice): void {
  const notification = new Notification(title, { body: body.slice(0, MAX_TEXT), tag })
  shownNotifications.add(notification)
  notification.addEventListener('close', () => shownNotifications.delete(notification))
  notification.addEventListener('click', () => {
    window.focus()
    show('c', conversationId)
    notification.close()
  })
}

async function isInSight(): Promise<boolean> {
  if (!document.hidden) return true
  const { held = [] } = await navigator.locks.query()
  return held.some(({ name }) => name === IN_SIGHT)
}

/** Tells the other tabs while this one can be seen. Returns what ends it. */
export function showSight(): () => void {
  // There are neither locks nor notifications over http from another computer.
  if (!('locks' in navigator)) return () => {}
  const end = new AbortController()
  const look = async () => {
    if (document.hidden) return
    await navigator.locks.request(IN_SIGHT, { mode: 'shared' }, () => untilHidden(end.signal))
  }
  const onVisibility = () => void look()
  document.addEventListener('visibilitychange', onVisibility)
  void look()
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    end.abort()
  }
}

const untilHidden = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = new AbortController()
    const finish = () => {
      end.abort()
      resolve()
    }
    const options = { signal: end.signal }
    if (signal.aborted || document.hidden) return finish()
    signal.addEventListener('abort', finish, options)
    document.addEventListener('visibilitychange', () => document.hidden && finish(), options)
  })
