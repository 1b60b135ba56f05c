/**
 * Processor time of this process, for comparisons of two pieces of work on the same machine. How busy that is with other
 * programs makes little difference; how fast it is makes none if both sides of a comparison are measured.
 */

/** Returns milliseconds of this process's own time. */
export async function processorMsOf(work: () => unknown): Promise<number> {
  // oxlint-disable-next-line tests/elapsed -- the only place that measures it
  const before = process.cpuUsage()
  await work()
  // oxlint-disable-next-line tests/elapsed -- as above
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Returns the time that it takes to look at each character once, of so many. */
export async function readingMsOf(chars: number): Promise<number> {
  const text = 'ab'.repeat(chars / 2)
  const times = 5
  const sums = () => Array.from({ length: times }, () => sumOf(text))
  return Math.max(1, await processorMsOf(sums)) / times
}

function sumOf(text: string): number {
  let sum = 0
  for (let at = 0; at < text.length; at++) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) | 0
  return sum
}
