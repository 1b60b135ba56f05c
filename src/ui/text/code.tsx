/** Code: as it is at first, and with colours when it has been still for a moment. */
import { useEffect, useState } from 'preact/hooks'
import type { CodeRun } from './highlight.ts'
import { visible } from './visible.ts'

/** A longer text takes too long to read through, also by patterns that hostile code is slow for. */
const MAX_CHARS = 20_000

/** An answer that is being written changes more often. */
const STILL_MS = 150

type ColouredCode = { readonly text: string; readonly runs: readonly CodeRun[] }
type Props = { readonly text: string; readonly language: string | undefined; readonly label?: string | undefined }

export function Code({ text, language, label }: Props) {
  const [colouredCode, setColoured] = useState<ColouredCode>()
  useEffect(() => {
    if (!language || text.length > MAX_CHARS) return undefined
    let isOver = false
    const timer = setTimeout(() => {
      const show = async () => {
        const { highlight } = await import('./highlight.ts')
        const runs = isOver ? undefined : highlight(text, language)
        if (runs) setColoured({ text, runs })
      }
      show().catch(() => {}) // without a connection there are no colours
    }, STILL_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [text, language])
  const runs = colouredCode?.text === text ? colouredCode.runs : [{ text, scope: undefined }]
  return (
    <pre class="code" tabIndex={label === undefined ? undefined : 0} aria-label={label}>
      {runs.map((run, index) =>
        run.scope === undefined ? (
          visible(run.text)
        ) : (
          <span key={index} class={`code-${run.scope.split('.', 1)[0]}`}>
            {visible(run.text)}
          </span>
        ),
      )}
    </pre>
  )
}
