/** Whether the server is short of memory, so that conversations at rest should be closed sooner. */
import { getHeapStatistics } from 'node:v8'

/** Part of the heap's limit, or of the container's memory, from which on memory is short. */
const HIGH_HEAP = 0.7
const HIGH_RESIDENT = 0.85

export function isMemoryShort(): boolean {
  const { used_heap_size, heap_size_limit } = getHeapStatistics()
  if (used_heap_size > heap_size_limit * HIGH_HEAP) return true
  // 0 or a huge number where there is no container.
  const constrained = process.constrainedMemory()
  return constrained > 0 && process.memoryUsage.rss() > constrained * HIGH_RESIDENT
}
