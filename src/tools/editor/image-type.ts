/** Detects the type of an image by its first bytes: a file extension may be wrong. */

export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

export function imageType(bytes: Buffer): ImageType | undefined {
  const begins = bytes.toString('latin1', 0, 12)
  if (begins.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (begins.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(begins)) return 'image/gif'
  return /^RIFF....WEBP$/s.test(begins) ? 'image/webp' : undefined
}
