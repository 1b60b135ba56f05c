/** Text of a program: with its colours, and at first as much as a person reads. */
import { useMemo, useState } from 'preact/hooks'
import { outputText, partsOfOutput } from '../../contract/values/output-text.ts'
import type { ImagePart } from '../../contract/values/message.ts'
import { texts } from '../state/preferences.ts'
import { ansiRuns } from '../text/ansi.ts'
import { visible } from '../text/visible.ts'
import { Code } from '../text/code.tsx'

const FIRST_LINES = 40
const FIRST_CHARS = 20_000

type OutputProps = {
  readonly text: string
  readonly label?: string
  /** The language of a file that is code; the output of a program has its own colours. */
  readonly language?: string | undefined
}

export function Output({ text, label, language }: OutputProps) {
  const [isWhole, setWhole] = useState(false)
  const lines = useMemo(() => text.split('\n'), [text])
  const isLong = lines.length > FIRST_LINES || text.length > FIRST_CHARS
  const shownText = isWhole || !isLong ? text : lines.slice(0, FIRST_LINES).join('\n').slice(0, FIRST_CHARS)
  const runs = useMemo(() => ansiRuns(shownText), [shownText])
  // What has the colours of a terminal keeps them.
  const isCode = language !== undefined && !shownText.includes('\u001B')
  if (text.trim() === '') return <p class="quiet">{texts.value.noOutput}</p>
  return (
    <>
      {isCode && <Code text={shownText} language={language} label={label} />}
      {!isCode && (
        <pre class="code" tabIndex={0} aria-label={label ?? texts.value.output}>
          {runs.map((run, index) =>
            run.className ? (
              <span key={index} class={run.className}>
                {run.text}
              </span>
            ) : (
              run.text
            ),
          )}
        </pre>
      )}
      {isLong && !isWhole && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {texts.value.showLines(lines.length)}
        </button>
      )}
    </>
  )
}

/** The output of a tool: text and pictures, the outputs of a command, or JSON. */
export function ToolOutput({ output }: { readonly output: unknown }) {
  const parts = partsOfOutput(output)
  if (!parts) return <Output text={outputText(output)} />
  return (
    <>
      {parts.map((part, index) =>
        part.type === 'text' ? <Output key={index} text={part.text} /> : <Picture key={index} part={part} />,
      )}
    </>
  )
}

const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

export function Picture({ part }: { readonly part: ImagePart }) {
  if (part.data === '') return null
  if (!PICTURES.has(part.media_type)) return <p class="quiet">{visible(part.media_type)}</p>
  return <img class="picture" src={`data:${part.media_type};base64,${part.data}`} alt={part.media_type} />
}
