/** The server's own log: lines on stdout, JSON or readable, with bearer tokens and keys redacted in every line. */
import { pino } from 'pino'
import type { Logger } from 'pino'
import type { LogLevel } from './log-levels.ts'
import { LOG_LEVELS } from './log-levels.ts'
import { LogOutput } from './log-output.ts'
import { safeJson } from './plain-text.ts'

export type { Logger }

export type LoggerOptions = {
  readonly level: LogLevel
  readonly redact: (text: string) => string
  /** Returns what is written in place of a JSON line that is redacted already. */
  readonly render?: ((line: string) => string) | undefined
}

// The logger has no transport: transports are worker files, which a single executable does not have.
export function createLogger({ level, redact, render = safeJson }: LoggerOptions): Logger {
  const output = new LogOutput(process.stdout, (droppedLines) =>
    logger.warn({ dropped: droppedLines }, 'log lines were dropped, because the output was not read'),
  )
  const logger: Logger = pino(
    {
      level: LOG_LEVELS[level],
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: ['req.headers.authorization', 'headers.authorization'],
    },
    { write: (line: string) => output.write(() => render(redact(line))) },
  )
  return logger
}

type Lines = { write(line: string): void }

/**
 * Returns the same log for content that may contain more secrets than the server's own; costs nothing until something
 * is logged.
 */
export function withRedaction<T extends object>(logger: T, redact: (text: string) => string): T {
  const { streamSym } = pino.symbols
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every pino logger has its stream there
  const lines = (logger as Record<typeof streamSym, Lines | undefined>)[streamSym]
  // Pino's own children do the same: everything else is the parent's. Lines are complete here.
  const write = (line: string) => {
    if (!lines) throw new Error('Only a logger of pino can be redacted.')
    lines.write(redact(line))
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object with this prototype
  return Object.create(logger, { [streamSym]: { value: { write } } }) as T
}
