/** Prints events live, for a person at a terminal. */
import { describeEvent } from '../../contract/events/describe-event.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { inputText, partsOfOutput, textOfParts } from '../../contract/values/output-text.ts'
import { plainText } from '../../telemetry/plain-text.ts'

export type EventPrinter = {
  readonly event: (event: Event | TransientEvent) => void
  readonly note: (text: string) => void
}

/** Maximum lines printed of one result: the log has all of it. */
const MAX_LINES = 20

const STYLES = { dim: '\x1b[2m', bold: '\x1b[1m', red: '\x1b[31m', cyan: '\x1b[36m', reset: '\x1b[0m' } as const

export function createEventPrinter({ write, color }: { write: (text: string) => void; color: boolean }): EventPrinter {
  const style = (name: keyof typeof STYLES, text: string) => {
    const plain = plainText(text)
    return color ? `${STYLES[name]}${plain}${STYLES.reset}` : plain
  }
  /** The message whose text was already printed while it was streamed. */
  let streamedId: string | undefined

  const show = (event: Event | TransientEvent): void => {
    switch (event.type) {
      case 'UserMessage':
        return write(
          `\n${style('bold', 'You:')} ${plainText(event.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join(' '))}\n`,
        )
      case 'AssistantDelta':
        if (event.text_delta === undefined) return
        if (streamedId !== event.message_id) write(`\n${style('bold', 'Agent:')} `)
        streamedId = event.message_id
        return write(plainText(event.text_delta))
      case 'AssistantAborted':
        return write(style('dim', ' (interrupted)\n'))
      case 'AssistantMessage':
        if (streamedId === event.message_id) return write('\n')
        return write(event.text ? `\n${style('bold', 'Agent:')} ${plainText(event.text)}\n` : '')
      case 'ToolUse':
        return write(`${indent(style('cyan', `$ ${inputText(event.input)}`))}\n`)
      case 'ToolResult':
        return write(`${indent(style(event.is_error ? 'red' : 'dim', textOf(event)))}\n`)
      case 'MessageWithdrawn':
      case 'Rewound':
      case 'FilesRestored':
      case 'ProcessesEnded':
      case 'SubagentStart':
      case 'ModelRetry':
      case 'McpServerUpdate':
        return write(style('dim', `${describeEvent(event)}\n`))
      case 'ErrorEvent':
        return write(`${style('red', `Error: ${event.message}`)}\n`)
      case 'Result':
        return write(style('dim', `\n${totalsOf(event)}\n`))
      case 'SystemInit':
        return write(style('dim', `Conversation ${event.session_id}\nin ${event.cwd}\n`))
      case 'RequestOpened':
        return showRequest(event)
      case 'RequestAnswered':
      case 'RequestClosed':
      case 'OutputRequest':
      case 'StatusUpdate':
      case 'ConfigUpdate':
      case 'SecretsUpdate':
      case 'WorkspaceSnapshot':
      case 'FileUpdate':
      case 'CommandResult':
      case 'TaskUpdate':
      case 'ForkedFrom':
      case 'ClientEvent':
      case 'NetworkAccess':
      case 'HookEvent':
      case 'Condensation':
      case 'ToolOutputDelta':
        return
      default:
        event satisfies never
    }
  }
  const showRequest = ({ payload }: EventOf<'RequestOpened'>) => {
    if ('tool_uses' in payload)
      write(
        `${style('bold', 'Waits for a decision:')} ${plainText(payload.tool_uses.map((use) => inputText(use.input)).join('; '))}\n`,
      )
    if ('questions' in payload)
      write(
        `${style('bold', 'Waits for an answer:')} ${plainText(payload.questions.map(({ question }) => question).join('; '))}\n`,
      )
  }
  return { event: show, note: (text) => write(style('dim', text)) }
}

function totalsOf({ usage, steps, duration_ms, stop_reason }: EventOf<'Result'>): string {
  const tokens = Object.values(usage).reduce((sum, each) => sum + each.input_tokens + each.output_tokens, 0)
  return `${steps} steps, ${(duration_ms / 1000).toFixed(1)} s, ${tokens} tokens: ${stop_reason}`
}

function textOf({ output }: EventOf<'ToolResult'>): string {
  const lines = (typeof output === 'string' ? output : shellText(output)).trimEnd().split('\n')
  const shownLines =
    lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES), `… ${lines.length - MAX_LINES} more lines`] : lines
  return shownLines.join('\n') || '(no output)'
}

function shellText(output: unknown): string {
  const parts = partsOfOutput(output)
  if (parts) return textOfParts(parts)
  if (typeof output !== 'object' || output === null || !('stdout' in output)) return JSON.stringify(output)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the output schema of the shell tool
  const { stdout, stderr, exit_code } = output as { stdout: string; stderr?: string; exit_code?: number | null }
  return [stdout.trimEnd(), stderr?.trimEnd(), exit_code ? `exit code ${exit_code}` : ''].filter(Boolean).join('\n')
}

const indent = (text: string) => text.replace(/^/gm, '    ')
