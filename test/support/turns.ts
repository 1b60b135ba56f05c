/** How long one step of work holds the event loop, compared with other work: in processor time, which other programs do not change. */

/** A step that is shorter is not compared: what surrounds the work takes as long. */
const MIN_MS = 25

/** Returns how many times longer the longest step is when the work is four times as much. Work that does not yield has 4. */
export async function growthOfSteps(work: (times: number) => Promise<unknown>): Promise<number> {
  const [once, more] = [await longestStep(() => work(1)), await longestStep(() => work(4))]
  return Math.max(more, MIN_MS) / Math.max(once, MIN_MS)
}

/** The least of two runs: the first compiles the code, and has the garbage of the tests before. */
async function longestStep(work: () => Promise<unknown>): Promise<number> {
  const runs: number[] = []
  for (let run = 0; run < 2; run++) {
    let [last, longest, isOver] = [cpuMs(), 0, false]
    const look = () => {
      const now = cpuMs()
      longest = Math.max(longest, now - last)
      last = now
      if (!isOver) setImmediate(look)
    }
    setImmediate(look)
    await work()
    isOver = true
    look()
    runs.push(longest)
  }
  return Math.min(...runs)
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
