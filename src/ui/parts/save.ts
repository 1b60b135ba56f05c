/** Downloads: of a URL, or of something that the page already has. */

/** How long a browser may take to begin, milliseconds. */
const KEPT_MS = 10_000

export function saveFrom(url: string, name: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
}

export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob)
  saveFrom(url, name)
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS)
}
