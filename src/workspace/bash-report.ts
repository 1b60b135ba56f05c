/** What bash says after each command, and how it is read from the stream that bash says it on. */
import { splitNulFields } from '../lib/nul-fields.ts'

export type Report = {
  readonly serial: number
  readonly exitCode: number
  readonly cwd: string
  /** The working directory that vanished; the shell now stands in `cwd`. */
  readonly lostCwd: string | undefined
  /** `$!`: the last process put into the background, ever. */
  readonly lastBackgroundPid: string
  /** Whether that one was started since the last report, and still runs. */
  readonly isNewAndRunning: boolean
  /** `$$`, as the shell itself counts. */
  readonly shellPid: string
}

/**
 * NUL-separated fields: `REPORT` and its own, then `STATE`, the state and `STATE_END`. An interrupt can cut any of it
 * short: then the next `REPORT` begins anew, and a state without its end is not used.
 */
export const REPORT = '<agent-server:report>'
export const STATE = '<agent-server:state>'
export const STATE_END = '<agent-server:state-end>'

const REPORT_FIELDS = 7
/** More than this (a shell with megabytes of functions) is not kept; the state saved before it is. */
const MAX_STATE_BYTES = 1024 * 1024

export type ReportHandlers = {
  readonly onReport: (report: Report) => void
  /** A script that brings the state back. */
  readonly onState: (state: Buffer) => void
}

/** Answers a function to be given each chunk of the stream. */
export function readReports({ onReport, onState }: ReportHandlers): (chunk: Uint8Array) => void {
  let report: string[] | undefined
  let state: Buffer | 'next' | undefined

  return splitNulFields(MAX_STATE_BYTES, (field) => {
    const text = field && field.length < 64 ? field.toString() : undefined
    if (text === REPORT) {
      report = []
      state = undefined
    } else if (report) {
      report.push(field?.toString() ?? '')
      if (report.length < REPORT_FIELDS) return
      onReport(parseReport(report))
      report = undefined
    } else if (text === STATE) {
      state = 'next'
    } else if (state === 'next') {
      state = field
    } else if (text === STATE_END && state) {
      onState(state)
    }
  })
}

function parseReport(fields: readonly string[]): Report {
  const [serial, exitCode, cwd = '', lostCwd, lastBackgroundPid = '', running, shellPid = ''] = fields
  return {
    serial: Number(serial),
    exitCode: Number(exitCode),
    cwd,
    lostCwd: lostCwd || undefined,
    lastBackgroundPid,
    isNewAndRunning: running === 'yes',
    shellPid,
  }
}
