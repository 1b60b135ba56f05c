/** Keeps values of this page in the browser. A browser that keeps nothing is one where everything is new each time. */

/** Servers below other paths of this host have their own values. The page is at `ui/` below that of its server. */
function storedName(name: string): string {
  const { pathname } = new URL('..', location.origin + location.pathname)
  return pathname === '/' ? name : `${name} ${pathname}`
}

export function rememberedValue(name: string): string | undefined {
  try {
    return localStorage.getItem(storedName(name)) ?? undefined
  } catch {
    return undefined
  }
}

/** Undefined forgets it. */
export function remember(name: string, value: string | undefined): void {
  try {
    if (value === undefined || value === '') localStorage.removeItem(storedName(name))
    else localStorage.setItem(storedName(name), value)
  } catch {
    // It is kept until the page is left.
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

export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(localStorage)) if (isOwnDraft(name)) localStorage.removeItem(name)
  } catch {
    // There are none.
  }
}

/** What a draft is of does not begin with a slash, as a path does. */
function isOwnDraft(name: string): boolean {
  const [ownName = ''] = name.split(' /', 1)
  return name.startsWith(DRAFT) && name === storedName(ownName)
}

const OWNER = 'writer'

/** Drafts belong to who has logged in. Somebody else neither sees nor continues them. */
export function keepDraftsOf(owner: string): void {
  if (rememberedValue(OWNER) !== owner) forgetDrafts()
  remember(OWNER, owner)
}
