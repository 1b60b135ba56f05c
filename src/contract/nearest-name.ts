/** Finds what a misspelt name was meant to be. */

/** More changes make another word: `OPENHANDS_SERVICE_PORT`, which Kubernetes sets, is 3 from `OPENHANDS_SERVER_PORT`. */
const MAX_CHANGES = 2

/** The known name that differs in the fewest letters, at most two and at most half of them; undefined when none is near. */
export function nearestName(name: string, knownNames: readonly string[]): string | undefined {
  const most = Math.min(MAX_CHANGES, Math.floor(name.length / 2))
  const [nearest] = knownNames
    // Each other letter is a change. This also bounds the time: the name may be a text of megabytes.
    .filter((candidate) => Math.abs(candidate.length - name.length) <= most)
    .map((candidate) => ({ candidate, changes: changesBetween(name, candidate) }))
    .filter(({ changes }) => changes <= most)
    .toSorted((a, b) => a.changes - b.changes)
  return nearest?.candidate
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment distance). */
function changesBetween(a: string, b: string): number {
  const at = (row: readonly number[] | undefined, index: number) => row?.[index] ?? Infinity
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const [before, last] = [rows[i - 2], rows[i - 1]]
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const replaceCost = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(at(last, j) + 1, at(row, j - 1) + 1, replaceCost, isSwap ? at(before, j - 2) + 1 : Infinity))
    }
    rows.push(row)
  }
  return at(rows.at(-1), b.length)
}
