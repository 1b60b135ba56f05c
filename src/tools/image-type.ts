/** What kind of image bytes are, by how they begin: a name's extension may say anything. */

export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

export function imageType(bytes: Buffer): ImageType | undefined {
  const begins = bytes.toString('latin1', 0, 12)
  if (begins.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (begins.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(begins)) return 'image/gif'
  return /^RIFF....WEBP$/s.test(begins) ? 'image/webp' : undefined
}
