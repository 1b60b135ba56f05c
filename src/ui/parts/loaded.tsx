/** Something that is read once, with its states: it loads, it failed, it is there. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { texts } from '../state/preferences.ts'
import { messageOf } from '../state/session.ts'

type Reading<T> = { readonly value?: T | undefined; readonly fault?: string | undefined }

/** Reads again when one of `keys` changes, and keeps the former value meanwhile. */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]) {
  const [reading, setReading] = useState<Reading<T>>({})
  const [attempt, setAttempt] = useState(0)
  useLayoutEffect(() => {
    const abort = new AbortController()
    read(abort.signal).then(
      (value) => !abort.signal.aborted && setReading({ value }),
      (error: unknown) => !abort.signal.aborted && setReading((before) => ({ ...before, fault: messageOf(error) })),
    )
    return () => abort.abort()
  }, [...keys, attempt])
  return { ...reading, again: () => setAttempt((before) => before + 1) }
}

type Props<T> = {
  readonly of: Reading<T> & { readonly again: () => void }
  readonly draw: (value: T) => ComponentChildren
}

export function WhenLoaded<T>({ of: { value, fault, again }, draw }: Props<T>) {
  return (
    <>
      {fault !== undefined && (
        <p class="fault" role="alert">
          {fault}{' '}
          <button type="button" class="link" onClick={again}>
            {texts.value.retry}
          </button>
        </p>
      )}
      {value === undefined ? fault === undefined && <p class="quiet loading">{texts.value.loading}</p> : draw(value)}
    </>
  )
}
