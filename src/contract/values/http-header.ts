/** Validates names and values of HTTP headers (RFC 9110, 5.1 and 5.5), and finds credentials in URLs. The messages quote none of them. */

const MAX_NAME_LENGTH = 128

/** The same for the API description, which cannot express that some names belong to the connection. */
export const HEADER_NAMES = { type: 'string', pattern: "^[\\w!#$%&'*+.^`|~-]+$", maxLength: MAX_NAME_LENGTH }

/** Longer values are refused by most servers, including ours. */
const MAX_HEADER_VALUE_LENGTH = 8192

/**
 * Headers that belong to the connection and not to the message: the HTTP client refuses them, or the request breaks. With
 * `host` it asks for another name in TLS, too: where many names share an address, a key would reach the server of another.
 */
const CONNECTION_HEADER =
  /^(connection|content-length|expect|host|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i

export function faultOfHeaderName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'a name is that of an HTTP header'
  if (CONNECTION_HEADER.test(name)) return `${name.toLowerCase()} is set by the connection`
  return undefined
}

/**
 * Accepts Latin-1 without control characters. White space around a value would be dropped in transit, so it does not
 * belong to the value.
 */
export function faultOfHeaderValue(value: string): string | undefined {
  if (value.length > MAX_HEADER_VALUE_LENGTH) return `a value can have at most ${MAX_HEADER_VALUE_LENGTH} characters`
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
    return 'a value contains a character that cannot be sent in an HTTP header; use visible ASCII characters'
  if (value.trim() !== value) return 'a value begins or ends with whitespace'
  return undefined
}

/** True for `http://user:password@host` and the like: everyone who sees the URL sees the credentials. */
export function hasUserInfo(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.username !== '' || url.password !== '')
}
