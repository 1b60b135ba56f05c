/** Keeps values of this page in the browser. A browser that keeps nothing is one where everything is new with each page. */
import { LOGIN_VALUE_NAME } from '../../contract/values/login-value.ts'

/** Servers below other paths of this host have their own values. The page is at `ui/` below that of its server. */
function storedName(name: string): string {
  const { pathname } = new URL('..', location.origin + location.pathname)
  return pathname === '/' ? name : `${name} ${pathname}`
}

/** What the browser has no room for, or does not keep at all: it is there until the page is left. */
const unkeptValues = new Map<string, string>()

export function rememberedValue(name: string): string | undefined {
  if (unkeptValues.has(name)) return unkeptValues.get(name)
  try {
    return localStorage.getItem(storedName(name)) ?? undefined
  } catch {
    return undefined
  }
}

/** The key or kind of key whose values the others are. */
const OWNER = 'writer'

/** What belongs to the browser. All other values belong to the person who has logged in. */
const OF_BROWSER: readonly string[] = [LOGIN_VALUE_NAME, OWNER, 'language', 'look', 'single-keys']

let owner: string | undefined

/** Undefined forgets it. */
export function remember(name: string, value: string | undefined): void {
  // What was begun in a login may end after it, when somebody else has logged in, maybe in another tab.
  const isOwn = owner !== undefined && rememberedValue(OWNER) === owner
  if (isOwn || OF_BROWSER.includes(name)) store(name, value)
}

function store(name: string, value = ''): void {
  unkeptValues.delete(name)
  try {
    if (value === '') localStorage.removeItem(storedName(name))
    else localStorage.setItem(storedName(name), value)
  } catch {
    if (value !== '') unkeptValues.set(name, value)
  }
}

/** Calls `listener` when another tab has changed the value. Returns what ends it. */
export function onOtherTab(name: string, listener: (value: string | undefined) => void): () => void {
  const onStorage = ({ key, newValue }: StorageEvent) => {
    if (key === storedName(name) || key === null) listener(newValue ?? undefined)
  }
  addEventListener('storage', onStorage)
  return () => removeEventListener('storage', onStorage)
}

const DRAFT = 'draft '

export const draftOf = (id: string) => DRAFT + id

/** Forgets what was being written for a conversation that is gone. */
export const forgetDraftsOf = (id: string): void => forget((name) => name.startsWith(DRAFT) && name.endsWith(id))

/** Forgets all that belongs to the person, drafts among them. */
export const forgetAll = (): void => forget((name) => !OF_BROWSER.includes(name))

/**
 * Values belong to who has logged in: those of somebody else are forgotten. Returns whether there were any, which this page
 * may have read.
 */
export function keepValuesOf(nextOwner: string): boolean {
  const formerOwner = rememberedValue(OWNER)
  owner = nextOwner
  if (formerOwner === nextOwner) return false
  forgetAll()
  remember(OWNER, nextOwner)
  return formerOwner !== undefined
}

/** Called when the login has ended. */
export const keepNoValues = (): void => void (owner = undefined)

/** Servers below other paths of this host keep theirs. */
function forget(isMeant: (name: string) => boolean): void {
  for (const name of unkeptValues.keys()) if (isMeant(name)) unkeptValues.delete(name)
  try {
    for (const storedKey of Object.keys(localStorage)) {
      // No name has a slash after a space, as a path has.
      const [name = ''] = storedKey.split(' /', 1)
      if (storedKey === storedName(name) && isMeant(name)) localStorage.removeItem(storedKey)
    }
  } catch {
    // There are none.
  }
}
