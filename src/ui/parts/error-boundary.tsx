/** What cannot be drawn, as what a newer server says, is replaced by a note: all else on the page goes on working. */
import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import { texts } from '../state/preferences.ts'

export function ErrorBoundary({ children }: { readonly children: ComponentChildren }) {
  const [error] = useErrorBoundary((error: unknown) => reportError(error))
  if (error === undefined) return <>{children}</>
  return (
    <p class="fault column" role="alert">
      {texts.value.notShown}{' '}
      <button type="button" class="link" onClick={() => location.reload()}>
        {texts.value.reload}
      </button>
    </p>
  )
}
