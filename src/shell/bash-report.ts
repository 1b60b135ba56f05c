/**
 * Reads the reports that bash sends after each command. Programs cannot write to their stream: the descriptor is closed
 * for them, and as a socket it cannot be opened through /proc. The shell itself and its forks (`(…)`, `{ …; } &`) hold
 * it while a command runs, so each report contains a token that the shell receives only after the command: earlier
 * reports, and reports on later commands, are ignored. The remaining risk: a command is the shell's own code, and may
 * redefine the reporting functions or read the lines after it. It can lie only about itself.
 */
import { isUtf8 } from 'node:buffer'
import { splitNulFields } from '../lib/text/nul-fields.ts'

/** The report is for display only, and not trusted: the kernel determines which process is the shell. */
export type Report = {
  /** 0 to 255; null if the report was invalid. */
  readonly exitCode: number | null
  /** Absolute; undefined if the report was invalid. */
  readonly cwd: string | undefined
  /** The deleted working directory; the shell is now in `cwd`. */
  readonly lostCwd: string | undefined
  /** `$!`: the pid of the last background process ever; digits, or empty. */
  readonly lastBackgroundPid: string
  /** True if that process was started since the last report and still runs. */
  readonly isNewAndRunning: boolean
  /** What the next command finds. */
  readonly stand: ShellStand
}

/** What the next command finds. */
export type ShellStand = {
  /** The working directory; undefined if it is not known. */
  readonly cwd: string | undefined
  /** Variables with an attribute (`declare -i`, `-n`) by which bash evaluates what is assigned to them; undefined: not known. */
  readonly evaluates?: readonly string[]
  /** The directories in which the shell looks for programs; null: not known. */
  readonly path: string | null
}

export const UNKNOWN_STAND: ShellStand = { cwd: undefined, path: null }

/**
 * NUL-separated fields: `REPORT`, the token and the report; then `STATE`, the token, the state, `STATE_END` and the
 * token. An interrupt can truncate any of it: then the next `REPORT` starts over, and an incomplete state is ignored.
 */
export const REPORT = '<agent-server:report>'
export const STATE = '<agent-server:state>'
export const STATE_END = '<agent-server:state-end>'

const REPORT_FIELDS = 5
const MAX_EXIT_CODE = 255
/** Linux supports no longer paths. */
const MAX_PATH_CHARS = 4096
/** A larger state (a shell with megabytes of functions) is not saved; the previous one is kept. */
const MAX_STATE_BYTES = 1024 * 1024

export type ReportHandlers = {
  /** Returns true if a report with this token was requested. */
  readonly isExpected: (token: string) => boolean
  readonly onReport: (report: Report, token: string) => void
  /** Receives a script that restores the state. */
  readonly onState: (state: Buffer) => void
}

/** Returns a function that receives each chunk of the stream. */
export function readReports({ isExpected, onReport, onState }: ReportHandlers): (chunk: Uint8Array) => void {
  let token = ''
  let report: (string | undefined)[] | undefined
  let state: Buffer | 'next' | undefined
  const begins = (text: string) => text.startsWith(REPORT) && isExpected(text.slice(REPORT.length))

  return splitNulFields(MAX_STATE_BYTES, (field) => {
    const text = field && field.length < 64 ? field.toString() : ''
    if (begins(text)) {
      token = text.slice(REPORT.length)
      report = []
      state = undefined
    } else if (report) {
      report.push(field && isUtf8(field) ? field.toString() : undefined)
      if (report.length < REPORT_FIELDS) return
      onReport(parseReport(report), token)
      report = undefined
    } else if (text === STATE + token) {
      state = 'next'
    } else if (state === 'next') {
      state = field
    } else if (text === STATE_END + token && state) {
      onState(state)
    }
  })
}

/** A shell function of the agent may have written it: invalid fields are ignored. */
function parseReport(fields: readonly (string | undefined)[]): Report {
  const [exitCode = '', cwd = '', lostCwd = '', lastBackgroundPid = '', rest = ''] = fields
  const [running, path, ...declaredLines] = rest.split('\n')
  return {
    exitCode: /^\d{1,3}$/.test(exitCode) && Number(exitCode) <= MAX_EXIT_CODE ? Number(exitCode) : null,
    cwd: isPath(cwd) ? cwd : undefined,
    lostCwd: isPath(lostCwd) ? lostCwd : undefined,
    lastBackgroundPid: /^[1-9]\d{0,9}$/.test(lastBackgroundPid) ? lastBackgroundPid : '',
    isNewAndRunning: running === 'yes' && /^[1-9]\d{0,9}$/.test(lastBackgroundPid),
    stand: standOf(cwd, path, declaredLines),
  }
}

/** If one of them cannot be read, nothing is known: it may be too long, or not UTF-8. */
function standOf(cwd: string, quotedPath: string | undefined, declaredLines: readonly string[]): ShellStand {
  const path = quotedPath === undefined ? undefined : unquote(quotedPath)
  if (!isPath(cwd) || path === undefined) return UNKNOWN_STAND
  return { cwd, evaluates: declaredLines.flatMap((line) => /^declare -[a-zA-Z]+ (\w+)/.exec(line)?.[1] ?? []), path }
}

/** Reads what `%q` writes. Undefined if it is not UTF-8. */
function unquote(text: string): string | undefined {
  if (!text.startsWith("$'")) return text === "''" ? '' : text.replaceAll(/\\(.)/g, '$1')
  // With control characters, and in some locales with any byte that is not ASCII.
  const bytes = Buffer.from(text.slice(2, -1)).toString('latin1')
  const rawBytes = Buffer.from(
    bytes.replaceAll(/\\([0-7]{3}|.)/g, (_, escape: string) => charOf(escape)),
    'latin1',
  )
  return isUtf8(rawBytes) ? rawBytes.toString() : undefined
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  E: '\x1b',
}
const charOf = (escape: string) =>
  escape.length === 3 ? String.fromCharCode(parseInt(escape, 8)) : (ESCAPES[escape] ?? escape)

const isPath = (text: string) => text.startsWith('/') && text.length <= MAX_PATH_CHARS
