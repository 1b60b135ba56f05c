/** Maps many items with limited concurrency. */

/** Results in the order of the items. The first failure rejects; no further item begins after it. */
export async function mapBounded<T, R>(
  items: readonly T[],
  concurrency: number,
  map: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  let hasFailed = false
  const work = async () => {
    while (next < items.length && !hasFailed) {
      const at = next++
      try {
        // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
        results[at] = await map(items[at]!)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work))
  return results
}
