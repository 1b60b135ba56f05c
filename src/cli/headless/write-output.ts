/** Writes what a run without the chat prints: the answer, or JSON, on stdout; what the agent does on stderr. */
import { wantsColor } from '../../config/config.ts'
import { describeEvent } from '../../contract/events/describe-event.ts'
import type { Event } from '../../contract/events/event.ts'
import { codeOf } from '../../lib/error-code.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { OutputFormat } from '../command-line/run-options.ts'
import { codeOfLostOutput } from '../terminal/lost-output.ts'
import { oneLine, plainText, safeJson } from '../../telemetry/plain-text.ts'
import { SettingNames } from '../settings/setting-names.ts'
import { FAILED } from './exit-code.ts'
import { writeAnswer } from './named-files.ts'
import type { TurnEnd } from './run-turn.ts'

export type Streams = {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

const DIM = '\x1b[2m'
const RESET = '\x1b[0m'

export class HeadlessOutput {
  readonly #format: OutputFormat
  readonly #streams: Streams
  readonly #color: boolean
  /** The code of the error after which nothing can be written any more. */
  #lost: string | undefined

  /** What the command line calls the fields of the API, in lines for a person. */
  names = new SettingNames()
  /** The path of a file that gets the last answer, too. */
  answerFile: string | undefined
  /** Called when nobody reads stdout any more. */
  onLost: () => void = () => {}

  constructor(format: OutputFormat, streams: Streams = process) {
    this.#format = format
    this.#streams = streams
    this.#color = wantsColor(streams.stderr)
    // What the agent does is for information: the answer is written also if nobody reads stderr.
    streams.stderr.on('error', () => {})
    streams.stdout.on('error', (error) => {
      if (this.isLost) return
      this.#lost = codeOf(error) ?? 'error'
      this.onLost()
    })
  }

  get isLost(): boolean {
    return this.#lost !== undefined
  }

  /** Says that the output is lost, and returns the exit code. Undefined unless it is. */
  get lostCode(): number | undefined {
    if (this.#lost === undefined) return undefined
    const why = this.#lost === 'EPIPE' ? ': nobody reads it any more' : ` (${this.#lost})`
    this.#streams.stderr.write(`agent-server: the answer cannot be written${why}.\n`)
    return codeOfLostOutput(this.#lost)
  }

  /** A line for a person, on stderr. */
  note(text: string): void {
    if (this.isLost) return
    const line = oneLine(text)
    this.#streams.stderr.write(this.#color ? `${DIM}${line}${RESET}\n` : `${line}\n`)
  }

  event(event: Event): void {
    if (this.#format === 'stream-json') return this.#json(event)
    if (isShown(event)) this.note(describeEvent(this.names.inEvent(event)))
  }

  /** Another line of `stream-json` than an event. */
  frame(frame: object): void {
    this.#json(frame)
  }

  /** Rejects if the file cannot be written. */
  async end(turn: TurnEnd, conversationId: string, exitCode: number): Promise<void> {
    const answer = answerOf(turn)
    const text = answer === '' || answer.endsWith('\n') ? answer : `${answer}\n`
    const { stdout } = this.#streams
    if (this.#format !== 'text') this.#json(outcomeOf(turn, conversationId, exitCode))
    else if (text !== '') stdout.write(stdout.isTTY ? plainText(text) : text)
    const { answerFile } = this
    if (answerFile === undefined || text === '') return
    await writeAnswer(answerFile, text)
  }

  /** Resolves when everything was written, or could not be. */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isLost) resolve()
      else this.#streams.stdout.write('', () => setImmediate(resolve))
    })
  }

  #json(value: object): void {
    this.#streams.stdout.write(`${safeJson(JSON.stringify(value))}\n`)
  }
}

/** The output that was asked for, or the last text; empty without an answer. */
function answerOf({ result }: TurnEnd): string {
  return result?.structured_output === undefined ? (result?.final_text ?? '') : JSON.stringify(result.structured_output)
}

/** The last line of JSON. */
function outcomeOf(turn: TurnEnd, conversation_id: string, exit_code: number): object {
  const { status, result, error, denied, steps } = turn
  return withoutUndefined({
    type: 'outcome',
    conversation_id,
    run_id: result?.run_id,
    status,
    stop_reason: result?.stop_reason,
    is_error: exit_code === FAILED,
    exit_code,
    final_text: result?.final_text,
    structured_output: result?.structured_output,
    steps,
    duration_ms: result?.duration_ms,
    usage: result?.usage,
    cost_usd: result?.cost_usd,
    denied: denied.length > 0 ? denied : undefined,
    error: error && { type: error.error_type, message: error.message },
  })
}

/** Returns true for what the agent does. Its last text is the answer. */
function isShown(event: Event): boolean {
  switch (event.type) {
    case 'AssistantMessage':
      return event.tool_use_ids.length > 0 && event.text.trim() !== ''
    case 'StatusUpdate':
    case 'SystemInit':
    case 'UserMessage':
    case 'ConfigUpdate':
    case 'RequestAnswered':
    case 'RequestClosed':
    case 'WorkspaceSnapshot':
    case 'Result':
    case 'ErrorEvent':
      return false
    default:
      return true
  }
}
