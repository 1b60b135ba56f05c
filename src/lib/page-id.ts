/**
 * Opaque page cursors: the sort key and id of the last item shown, so that a list stays stable while items are added.
 */

export type PagePosition = readonly [sortKey: string, id: string]

export function encodePageId(position: PagePosition): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** Returns undefined for anything that `encodePageId` did not create. */
export function decodePageId(pageId: string): PagePosition | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(pageId, 'base64url').toString())
    if (!Array.isArray(value) || value.length !== 2) return undefined
    const [sortKey, id] = value
    return typeof sortKey === 'string' && typeof id === 'string' ? [sortKey, id] : undefined
  } catch {
    return undefined
  }
}
