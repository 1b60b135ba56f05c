/** The destination of the server's own requests: the URL and the headers of callbacks and of HTTP hooks. */
import { z } from 'zod'
import { HEADER_NAMES, faultOfHeaderName, hasUserInfo } from './http-header.ts'

const MAX_URL_LENGTH = 2048
const MAX_HEADERS = 20
const MAX_HEADER_LENGTH = 4096
const HEADER_VALUE = /^[\t\x20-\x7e]*$/

/** Headers that the server sets itself, or that belong to the connection and not to the message. */
const RESERVED_HEADER =
  /^(webhook-.*|content-.*|proxy-.*|host|user-agent|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|http2-settings)$/i

export const CallbackUrl = z
  .url({ protocol: /^https?$/, error: 'must be an absolute http or https URL' })
  .max(MAX_URL_LENGTH)
  .refine((url) => !hasUserInfo(url), { error: 'must not contain credentials; send them in headers' })
  .describe('An http or https URL without credentials; put credentials in `headers`. The URL is not masked.')

/** Errors are reported by position: a name may contain a value by mistake. */
export const CallbackHeaders = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    const entries = Object.entries(value)
    const refuse = (message: string) => issues.push({ code: 'custom', input: undefined, path: [], message })
    entries.forEach(([name, text], at) => {
      const fault = faultOfHeader(name, text)
      if (fault !== undefined) refuse(`entry ${at + 1}: ${fault}`)
    })
    if (new Set(entries.map(([name]) => name.toLowerCase())).size < entries.length) refuse('a name occurs twice')
    if (entries.length > MAX_HEADERS) refuse(`at most ${MAX_HEADERS} are allowed`)
  })
  .meta({
    propertyNames: HEADER_NAMES,
    additionalProperties: { type: 'string', pattern: HEADER_VALUE.source, maxLength: MAX_HEADER_LENGTH },
    maxProperties: MAX_HEADERS,
  })
  .describe('Headers of each delivery. Encrypted at rest and returned masked.')

function faultOfHeader(name: string, value: string): string | undefined {
  if (RESERVED_HEADER.test(name)) return `${name.toLowerCase()} is set by the server or the connection`
  const fault = faultOfHeaderName(name)
  if (fault !== undefined) return fault
  if (value.length > MAX_HEADER_LENGTH) return `a value can have at most ${MAX_HEADER_LENGTH} characters`
  if (!HEADER_VALUE.test(value)) return 'a value can contain only visible ASCII characters and spaces'
  return undefined
}
