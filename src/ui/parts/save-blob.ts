/** Downloads something that the page already has. */

/** How long a browser may take to begin, milliseconds. */
const KEPT_MS = 10_000

export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS)
}
