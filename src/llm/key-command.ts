/** A program of the operator that prints the key of the model endpoint, for keys that expire. */
import { z } from 'zod'
import { faultOfHeaderValue } from '../contract/values/http-header.ts'
import { MIN_SECRET_LENGTH } from '../contract/secret.ts'
import { orAborted } from '../lib/bounded-wait.ts'
import type { HostEnvironment } from '../lib/start-process.ts'
import { LlmError } from './errors/llm-error.ts'
import type { ProgramOutput } from './key-program.ts'
import { runKeyProgram } from './key-program.ts'

/** How long a key is used that comes without the time when it expires. */
const DEFAULT_LIFE_MS = 5 * 60_000
/** A clock can be wrong, and a time in another unit lies far away. */
const LONGEST_LIFE_MS = 24 * 60 * 60_000
/** A key must not expire while a request with it is being sent. */
const MARGIN_MS = 60_000
/** Keys that are redacted: those of some days, if they live for an hour. */
const MAX_PRINTED = 100
const MAX_LINE_CHARS = 500

const PrintedKey = z.object({
  key: z.string(),
  /** ISO 8601, or seconds since 1970. */
  expires_at: z.union([z.iso.datetime({ offset: true }), z.number()]).optional(),
})

type CurrentKey = { readonly key: string; readonly until: number }

/** One run serves all requests that wait for it. */
export class KeyCommand {
  readonly #argv: readonly string[]
  readonly #env: HostEnvironment
  readonly #printed = new Set<string>()
  #current: CurrentKey | undefined
  #running: Promise<string> | undefined

  /** `env`: without keys of the server. */
  constructor(argv: readonly string[], env: HostEnvironment) {
    this.#argv = argv
    this.#env = env
  }

  /** All keys that it has printed, to be redacted, the newest last. */
  get printed(): ReadonlySet<string> {
    return this.#printed
  }

  /** Rejects with an `LlmError` of type `auth`. The signal ends only this wait. */
  async key(signal: AbortSignal): Promise<string> {
    const { key, until } = this.#current ?? { until: 0 }
    return key !== undefined && Date.now() < until ? key : await this.#renewed(signal)
  }

  /** The key after the endpoint has refused one: another request may have renewed it already. */
  async keyAfter(refusedKey: string, signal: AbortSignal): Promise<string> {
    if (this.#current?.key === refusedKey) this.#current = undefined
    return await this.key(signal)
  }

  async #renewed(signal: AbortSignal): Promise<string> {
    this.#running ??= this.#run().finally(() => (this.#running = undefined))
    return await orAborted(this.#running, signal)
  }

  async #run(): Promise<string> {
    const output = await runKeyProgram(this.#argv, this.#env).catch((error: unknown) => {
      throw failedCommand(error instanceof Error ? error.message : String(error), this.#printed)
    })
    const current = readOutput(output, this.#printed)
    this.#printed.delete(current.key)
    this.#printed.add(current.key)
    const [oldest] = this.#printed
    if (this.#printed.size > MAX_PRINTED && oldest !== undefined) this.#printed.delete(oldest)
    this.#current = current
    return current.key
  }
}

/** Quotes nothing of the standard output, which can be a key, also where the error output repeats it, as `set -x` does. */
function readOutput({ stdout, stderr, end }: ProgramOutput, printedKeys: ReadonlySet<string>): CurrentKey {
  const fail = (why: string) => failedCommand(why, printedKeys)
  const lastLine = () => lastLineOf(stderr, [...printedKeys, ...wordsIn(stdout)])
  if (end !== undefined) throw fail(`${end}${lastLine()}`)
  const text = stdout.trim()
  if (text === '') throw fail(`it printed nothing${lastLine()}`)
  const { key, expires_at } = text.startsWith('{') ? parsePrinted(text, fail) : { key: text }
  const fault = faultOfKey(key)
  if (fault !== undefined) throw fail(fault)
  const now = Date.now()
  if (expires_at === undefined) return { key, until: now + DEFAULT_LIFE_MS }
  const remainingMs = (typeof expires_at === 'number' ? expires_at * 1000 : Date.parse(expires_at)) - now
  if (remainingMs <= 0) throw fail('the key that it printed has expired; check expires_at, and the clock')
  return { key, until: now + Math.min(remainingMs - Math.min(MARGIN_MS, remainingMs / 2), LONGEST_LIFE_MS) }
}

function parsePrinted(text: string, fail: (why: string) => LlmError): z.infer<typeof PrintedKey> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw fail('it printed something that begins with { and is not JSON')
  }
  const { success, data } = PrintedKey.safeParse(json)
  if (success) return data
  throw fail('it printed JSON that is not {"key": "…", "expires_at": "…"}, with an ISO 8601 time or Unix seconds')
}

function faultOfKey(key: string): string | undefined {
  if (/[\r\n]/.test(key)) return 'it printed more than one line; it must print the key and nothing else'
  if (key.length < MIN_SECRET_LENGTH)
    return `it printed a key with less than ${MIN_SECRET_LENGTH} characters, which could not be redacted`
  return faultOfHeaderValue(key) ?? (/^[\x21-\x7e]+$/.test(key) ? undefined : 'it printed a key with a space in it')
}

const wordsIn = (text: string): string[] =>
  text.split(/[\s"',:{}]+/).filter(({ length }) => length >= MIN_SECRET_LENGTH)

/** Cut after the keys were replaced: the beginning of one would be left otherwise. */
function lastLineOf(stderr: string, keys: readonly string[]): string {
  // oxlint-disable-next-line no-control-regex -- a terminal would obey them
  const lines = stderr.split(/[\r\n]+/).map((line) => line.replaceAll(/[\u0000-\u001F\u007F-\u009F]/g, ' ').trim())
  const last = lines.findLast((line) => line !== '')
  return last === undefined ? '' : `: ${withoutKeys(last, keys).slice(0, MAX_LINE_CHARS)}`
}

function failedCommand(why: string, printedKeys: ReadonlySet<string>): LlmError {
  return new LlmError('auth', `The command of LLM_API_KEY_COMMAND gave no key: ${withoutKeys(why, [...printedKeys])}.`)
}

/** The longest first: another one can be a part of it. */
const withoutKeys = (text: string, keys: readonly string[]): string =>
  keys
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, key) => rest.replaceAll(key, '<secret:LLM_API_KEY_COMMAND>'), text)
