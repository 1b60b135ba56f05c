/** The levels of the log, for the configuration, which does not load the logger. */

/** Level names as in OPENHANDS_LOG_LEVEL. */
export const LOG_LEVELS = {
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
} as const
export type LogLevel = keyof typeof LOG_LEVELS
