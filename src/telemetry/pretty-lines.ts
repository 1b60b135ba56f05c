/** The log for a person at a terminal: each JSON line becomes a short readable one. Loads its package on first use only. */

import { mapStrings } from '../lib/json/map-strings.ts'
import { plainText } from './plain-text.ts'

/** These fields are of no use at a terminal: the start says where the server listens, and one person's requests need no ids. */
const LEFT_OUT = 'req_id,address,key,key_id,key_name,method,route,status,ms,conversation_id'
const SAID_AT_START = /"msg":"Server listening at /

/** Returns a function from one line of JSON to what is shown of it, with its newline; empty when nothing is. */
export async function loadPrettyLines({ color }: { readonly color: boolean }): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  const render = prettyFactory({
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    ignore: LEFT_OUT,
    singleLine: true,
    messageFormat: (log, messageKey) => describeRequest(log) ?? textOf(log[messageKey]),
  })
  return (line) => (SAID_AT_START.test(line) ? '' : render(plainFields(line)))
}

/** The fields without what a terminal obeys: only the package writes styles. A text that is not JSON is shown whole. */
function plainFields(line: string): object | string {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a line of the log is an object
    return mapStrings(JSON.parse(line), plainText) as object
  } catch {
    return plainText(line)
  }
}

/** `POST /conversations 201 12 ms`, for the lines of requests and sockets; undefined for all others. */
function describeRequest({ method, route, status, ms }: Record<string, unknown>): string | undefined {
  if (typeof method !== 'string' || typeof status !== 'number') return undefined
  const path = typeof route === 'string' ? route : '(no such route)'
  return `${method} ${path} ${status}${typeof ms === 'number' ? ` ${ms} ms` : ''}`
}

/** Returns one line: a second one would look like another line of the log. */
const textOf = (message: unknown): string =>
  typeof message === 'string' ? message.trimEnd().replaceAll('\n', ' ⏎ ') : ''
