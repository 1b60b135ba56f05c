/** Keeps values of this page in the browser. A browser that keeps nothing is one where everything is new each time. */

export function rememberedValue(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Undefined forgets it. */
export function remember(name: string, value: string | undefined): void {
  try {
    if (value === undefined || value === '') localStorage.removeItem(name)
    else localStorage.setItem(name, value)
  } catch {
    // It is kept until the page is left.
  }
}

/** Calls `listener` when another tab has changed the value. Returns what ends it. */
export function onOtherTab(name: string, listener: (value: string | undefined) => void): () => void {
  const onStorage = ({ key, newValue }: StorageEvent) => {
    if (key === name || key === null) listener(newValue ?? undefined)
  }
  addEventListener('storage', onStorage)
  return () => removeEventListener('storage', onStorage)
}

const DRAFT = 'draft '

export const draftOf = (id: string) => DRAFT + id

export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(DRAFT)) localStorage.removeItem(name)
  } catch {
    // There are none.
  }
}
