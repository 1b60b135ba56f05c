/**
 * What bash says after each command, and how it is read from the stream that bash says it on. Programs cannot write
 * there: the descriptor is closed to them, and being a socket it cannot be opened through /proc. The shell itself and
 * its forks (`(…)`, `{ …; } &`) hold it while a command runs, so each report carries a token that the shell is told
 * only behind the command: what they say beforehand, or of a later command, counts for nothing. What remains: the text
 * of a command is the shell's own, and may redefine what reports or read the lines behind it. It can lie about itself.
 */
import { splitNulFields } from '../lib/text/nul-fields.ts'

/** Nothing in it is to be relied on but for telling: which process is the shell, the kernel says. */
export type Report = {
  /** 0 to 255; null when the shell told nothing that could be one. */
  readonly exitCode: number | null
  /** Absolute; undefined when the shell told nothing that could be one. */
  readonly cwd: string | undefined
  /** The working directory that vanished; the shell now stands in `cwd`. */
  readonly lostCwd: string | undefined
  /** `$!`: the last process put into the background, ever; digits, or nothing. */
  readonly lastBackgroundPid: string
  /** Whether that one was started since the last report, and still runs. */
  readonly isNewAndRunning: boolean
}

/**
 * NUL-separated fields: `REPORT` and the token, and its own; then `STATE` and the token, the state, `STATE_END` and the
 * token. An interrupt can cut any of it short: then the next `REPORT` begins anew, and a state without its end is not
 * used.
 */
export const REPORT = '<agent-server:report>'
export const STATE = '<agent-server:state>'
export const STATE_END = '<agent-server:state-end>'

const REPORT_FIELDS = 5
const MAX_EXIT_CODE = 255
/** Linux takes no longer paths. */
const MAX_PATH_CHARS = 4096
/** More than this (a shell with megabytes of functions) is not kept; the state saved before it is. */
const MAX_STATE_BYTES = 1024 * 1024

export type ReportHandlers = {
  /** Whether a report with this token was asked for. */
  readonly isExpected: (token: string) => boolean
  readonly onReport: (report: Report, token: string) => void
  /** A script that brings the state back. */
  readonly onState: (state: Buffer) => void
}

/** Answers a function to be given each chunk of the stream. */
export function readReports({ isExpected, onReport, onState }: ReportHandlers): (chunk: Uint8Array) => void {
  let token = ''
  let report: string[] | undefined
  let state: Buffer | 'next' | undefined
  const begins = (text: string) => text.startsWith(REPORT) && isExpected(text.slice(REPORT.length))

  return splitNulFields(MAX_STATE_BYTES, (field) => {
    const text = field && field.length < 64 ? field.toString() : ''
    if (begins(text)) {
      token = text.slice(REPORT.length)
      report = []
      state = undefined
    } else if (report) {
      report.push(field?.toString() ?? '')
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

/** A function of the agent's may have written it: whatever does not have the form of a report is left out. */
function parseReport(fields: readonly string[]): Report {
  const [exitCode = '', cwd = '', lostCwd = '', lastBackgroundPid = '', running] = fields
  return {
    exitCode: /^\d{1,3}$/.test(exitCode) && Number(exitCode) <= MAX_EXIT_CODE ? Number(exitCode) : null,
    cwd: isPath(cwd) ? cwd : undefined,
    lostCwd: isPath(lostCwd) ? lostCwd : undefined,
    lastBackgroundPid: /^[1-9]\d{0,9}$/.test(lastBackgroundPid) ? lastBackgroundPid : '',
    isNewAndRunning: running === 'yes' && /^[1-9]\d{0,9}$/.test(lastBackgroundPid),
  }
}

const isPath = (text: string) => text.startsWith('/') && text.length <= MAX_PATH_CHARS
