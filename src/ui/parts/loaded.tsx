/** Something that is read once, with its states: it loads, it failed, it is there. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { texts } from '../state/preferences.ts'
import { messageOf, recoveries } from '../state/session.ts'

type Reading<T> = { readonly value?: T | undefined; readonly fault?: string | undefined }

/**
 * Reads again when one of `keys` changes, and keeps the former value meanwhile. Another `changes` says that what is read may
 * have changed: it is read again when it has been read, however often that happens. So is all that was read before the
 * connection was lost.
 */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[], changes?: number) {
  const version = `${changes} ${recoveries.value}`
  const [reading, setReading] = useState<Reading<T>>({})
  const [attempt, setAttempt] = useState(0)
  const [readVersion, setReadVersion] = useState(version)
  const signal = useRef<AbortSignal>(undefined)
  const isReading = useRef(false)
  const start = (own: AbortSignal) => {
    isReading.current = true
    const end = (next: (before: Reading<T>) => Reading<T>) => {
      if (own.aborted) return
      isReading.current = false
      setReading(next)
      setReadVersion(version)
    }
    read(own).then(
      (value) => end(() => ({ value })),
      (error: unknown) => own.aborted || end((before) => ({ ...before, fault: messageOf(error) })),
    )
  }
  useLayoutEffect(() => {
    const abort = new AbortController()
    signal.current = abort.signal
    start(abort.signal)
    return () => abort.abort()
  }, [...keys, attempt])
  useLayoutEffect(() => {
    if (signal.current && !isReading.current && readVersion !== version) start(signal.current)
  }, [version, readVersion])
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
