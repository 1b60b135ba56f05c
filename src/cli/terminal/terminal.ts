/**
 * Writes to the streams of this process, which may be a terminal: the only place of `cli` that does, except the answer of
 * `headless`, which programs read unchanged.
 */
import { safeJson, styledText } from '../../telemetry/plain-text.ts'

export const say = (text: string): void => void process.stdout.write(styledText(text))

export const sayError = (text: string): void => void process.stderr.write(styledText(text))

/** One line. */
export const sayJson = (value: unknown): void => void process.stdout.write(`${safeJson(JSON.stringify(value))}\n`)
