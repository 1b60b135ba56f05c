/** Detects whether the server is short of memory, so that idle conversations are closed sooner. */
import { getHeapStatistics } from 'node:v8'

/** The part of the heap's limit, or of the container's memory, above which memory is short. */
const HIGH_HEAP = 0.7
const HIGH_RESIDENT = 0.85

export function isMemoryShort(): boolean {
  const { used_heap_size, heap_size_limit } = getHeapStatistics()
  if (used_heap_size > heap_size_limit * HIGH_HEAP) return true
  // This is 0 or a huge number outside a container.
  const constrainedBytes = process.constrainedMemory()
  return constrainedBytes > 0 && process.memoryUsage.rss() > constrainedBytes * HIGH_RESIDENT
}
