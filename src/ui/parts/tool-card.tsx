/** A tool call on one line, with its input and its output below when it is open. */
import { structuredPatch } from 'diff'
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { fieldsOfInput, titleOf } from '../../contract/events/call-title.ts'
import { exitCodeOf, hasCallFailed } from '../state/call-result.ts'
import type { Call } from '../state/items.ts'
import { texts } from '../state/preferences.ts'
import { CutTexts } from './cut-texts.tsx'
import { duration } from './amounts.ts'
import { asText, short, visible } from '../text/visible.ts'
import { Output, ToolOutput } from './output.tsx'

type Props = {
  readonly call: Call
  readonly output: string | undefined
  readonly now: number
  /** The agent waits for somebody: the call does not run. */
  readonly isWaiting: boolean
  /** The line below the output. */
  readonly children?: ComponentChildren
}

export function ToolCard({ call: { use, result }, output, now, isWaiting, children }: Props) {
  const [isOpen, setOpen] = useState<boolean>()
  const code = exitCodeOf(result)
  const hasFailed = hasCallFailed(result)
  const open = isOpen ?? hasFailed
  const ms = result ? result.duration_ms : Math.max(0, now - Date.parse(use.timestamp))
  const mark = result ? (hasFailed ? '✕' : '✓') : isWaiting ? '◆' : '◐'
  return (
    <div class={`tool ${hasFailed ? 'failed' : ''}`}>
      <button type="button" class="line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="shape" aria-hidden="true">
          {mark}
        </span>
        <strong>{visible(use.name)}</strong>
        <code class="target">{short(titleOf(use.name, use.input))}</code>
        {code !== undefined && code !== 0 && <span class="badge">exit {code}</span>}
        {(result || !isWaiting) && <span class="quiet number">{duration(ms)}</span>}
      </button>
      {open && (
        <div class="inside">
          <Input
            input={result?.ran_input ?? use.input}
            shown={result?.ran_input ? '' : short(titleOf(use.name, use.input))}
          />
          {result ? <ToolOutput output={result.error_message ?? result.output} /> : <Output text={output ?? ''} />}
          <CutTexts event={use} />
          <CutTexts event={result} />
          {result?.full_output_path && <p class="quiet">{texts.value.fullOutput(visible(result.full_output_path))}</p>}
          {children}
        </div>
      )}
    </div>
  )
}

const PAIRS = [
  ['old_str', 'new_str'],
  ['old_string', 'new_string'],
] as const

/** An edit is shown as what it changes. */
function Input({ input, shown }: { readonly input: unknown; readonly shown: string }) {
  const fields = fieldsOfInput(input)
  const pair = PAIRS.find(([before, after]) => typeof fields[before] === 'string' && typeof fields[after] === 'string')
  if (pair) {
    // A tool may read other fields, and not the pair.
    const rest = Object.entries(fields).filter(([name]) => name !== pair[0] && name !== pair[1])
    const isRestShown = rest.map(([, value]) => asText(value)).join(' ') === shown
    return (
      <>
        {!isRestShown && <pre class="code">{visible(asText(Object.fromEntries(rest)))}</pre>}
        <Edit before={asText(fields[pair[0]])} after={asText(fields[pair[1]])} />
      </>
    )
  }
  const text =
    Object.keys(fields).length === 1 && typeof fields['command'] === 'string' ? fields['command'] : asText(input)
  // The line above has it.
  return text === shown && isOneLine(text) ? null : <pre class="code">{visible(text)}</pre>
}

const SHORT_LINE_CHARS = 110

const isOneLine = (text: string): boolean => text.length <= SHORT_LINE_CHARS && visible(text) === text

/** Lines that are shown at first. */
const FIRST_LINES = 200
/** The time of a comparison takes the square of the number of changed lines: two texts with more are not compared. */
const MAX_CHANGED_LINES = 1000

function Edit({ before, after }: { readonly before: string; readonly after: string }) {
  const [isWhole, setWhole] = useState(false)
  const lines = useMemo(() => linesOfEdit(before, after), [before, after])
  return (
    <>
      <pre class="code diff">
        {(isWhole ? lines : lines.slice(0, FIRST_LINES)).map((line, index) => (
          <span key={index} class={classOfLine(line)}>
            {visible(line)}
            {'\n'}
          </span>
        ))}
      </pre>
      {!isWhole && lines.length > FIRST_LINES && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {texts.value.showLines(lines.length)}
        </button>
      )}
    </>
  )
}

function linesOfEdit(before: string, after: string): string[] {
  const options = { context: 3, maxEditLength: MAX_CHANGED_LINES }
  const patch = structuredPatch('', '', before, after, '', '', options)
  if (patch) return patch.hunks.flatMap((hunk) => hunk.lines).filter((line) => !line.startsWith('\\'))
  return [...before.split('\n').map((line) => `-${line}`), ...after.split('\n').map((line) => `+${line}`)]
}

export function classOfLine(line: string): string {
  if (line.startsWith('+')) return 'added'
  if (line.startsWith('-')) return 'removed'
  return line.startsWith('@@') ? 'hunk' : 'same'
}
