/** Converts bytes to text and back without loss: `encodeText` reverses `decodeText` exactly. */

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'latin-1'

export type DecodedText = {
  /** The text without the byte order mark. */
  readonly text: string
  readonly encoding: TextEncoding
  readonly hasBom: boolean
}

/** Returns undefined if these bytes are not text. */
export function decodeText(bytes: Buffer): DecodedText | undefined {
  const markedEncoding = BOMS.find(([, bom]) => bytes.subarray(0, bom.length).equals(bom))
  if (markedEncoding) {
    const [encoding, bom] = markedEncoding
    const text = decodeAs(encoding, bytes.subarray(bom.length))
    return text === undefined ? undefined : { text, encoding, hasBom: true }
  }
  if (bytes.includes(0)) return undefined
  const utf8 = decodeAs('utf-8', bytes)
  if (utf8 !== undefined) return { text: utf8, encoding: 'utf-8', hasBom: false }
  return looksLikeText(bytes) ? { text: bytes.toString('latin1'), encoding: 'latin-1', hasBom: false } : undefined
}

/** Returns undefined if the encoding cannot express a character of the text. */
export function encodeText({ text, encoding, hasBom }: DecodedText): Buffer | undefined {
  const bytes = encodeAs(encoding, text)
  const bom = hasBom ? BOMS.find(([name]) => name === encoding)?.[1] : undefined
  return bytes && bom ? Buffer.concat([bom, bytes]) : bytes
}

const BOMS: readonly (readonly [TextEncoding, Buffer])[] = [
  ['utf-8', Buffer.from([0xef, 0xbb, 0xbf])],
  ['utf-16le', Buffer.from([0xff, 0xfe])],
  ['utf-16be', Buffer.from([0xfe, 0xff])],
]

function decodeAs(encoding: TextEncoding, bytes: Buffer): string | undefined {
  switch (encoding) {
    case 'utf-8':
      try {
        // The decoder would otherwise drop a second mark, which is a character of the text.
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
      } catch {
        return undefined
      }
    case 'utf-16le':
      return decodeUtf16(bytes)
    case 'utf-16be':
      return bytes.length % 2 === 0 ? decodeUtf16(Buffer.from(bytes).swap16()) : undefined
    case 'latin-1':
      return bytes.toString('latin1')
  }
}

/** A text with a NUL character, of which UTF-32 has many, is also rejected here. */
function decodeUtf16(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf16le')
  return bytes.length % 2 === 0 && text.isWellFormed() && !text.includes('\0') ? text : undefined
}

function encodeAs(encoding: TextEncoding, text: string): Buffer | undefined {
  // Half of a surrogate pair would become a question mark.
  if (!text.isWellFormed()) return undefined
  switch (encoding) {
    case 'utf-8':
      return Buffer.from(text)
    case 'utf-16le':
      return Buffer.from(text, 'utf16le')
    case 'utf-16be':
      return Buffer.from(text, 'utf16le').swap16()
    case 'latin-1':
      // eslint-disable-next-line no-control-regex
      return /^[\x00-\xff]*$/.test(text) ? Buffer.from(text, 'latin1') : undefined
  }
}

/** Every byte sequence is valid latin-1; but control characters are rare in text, and frequent in compressed data. */
const MAX_CONTROL_SHARE = 0.02

function looksLikeText(bytes: Buffer): boolean {
  let controls = 0
  // oxlint-disable-next-line typescript/no-non-null-assertion -- the table has an entry for each byte
  for (let at = 0; at < bytes.length; at++) controls += IS_RARE_CONTROL[bytes[at]!]!
  return controls <= bytes.length * MAX_CONTROL_SHARE
}

/**
 * 1 for control characters except backspace, tab, line feed, form feed, carriage return and escape. A table, because it
 * is read for each byte.
 */
const IS_RARE_CONTROL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 && ![8, 9, 10, 12, 13, 27].includes(byte) ? 1 : 0,
)
