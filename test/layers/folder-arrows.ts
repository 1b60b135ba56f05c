/** How files and folders depend on each other: an arrow goes from a folder to one that a file directly in it imports from. */
import { dirname } from 'node:path/posix'

type Source = { readonly path: string; readonly imports: readonly string[] }

/** `imports`: how many imports of files the arrow stands for. */
export type Arrow = { readonly from: string; readonly to: string; readonly imports: number }

/** Also with imports of types only. `.` is the folder of all. */
export function arrowsBetween(sources: readonly Source[]): Arrow[] {
  const known = new Set(sources.map(({ path }) => path))
  const pairs = sources.flatMap(({ path, imports }) =>
    imports.filter((to) => known.has(to)).map((to) => ({ from: dirname(path), to: dirname(to) })),
  )
  const across = pairs.filter(({ from, to }) => from !== to)
  const counted = Map.groupBy(across, ({ from, to }) => `${from} -> ${to}`)
  return [...counted.values()].flatMap((all) => all.slice(0, 1).map((arrow) => ({ ...arrow, imports: all.length })))
}

/** Pairs of folders that import each other, and of which neither contains the other. */
export const mutualPairs = (arrows: readonly Arrow[]): [Arrow, Arrow][] =>
  pairsIn(arrows).filter(([{ from, to }]) => !contains(from, to))

/** Pairs of a folder and one inside it that import each other; the inner one imports types only. */
export const nestedPairs = (arrows: readonly Arrow[]): [Arrow, Arrow][] =>
  pairsIn(arrows).filter(([{ from, to }]) => contains(from, to))

/** The first folder of a pair is the first by name: no folder inside another one precedes it. */
function pairsIn(arrows: readonly Arrow[]): [Arrow, Arrow][] {
  return arrows.flatMap((arrow): [Arrow, Arrow][] => {
    const back = arrows.find(({ from, to }) => from === arrow.to && to === arrow.from)
    return back && arrow.from < arrow.to ? [[arrow, back]] : []
  })
}

const contains = (outer: string, inner: string): boolean => outer === '.' || inner.startsWith(`${outer}/`)

/**
 * Arrows that point up when the folders stand as they best can, each above those that it imports from. The order is
 * that of Eades, Lin and Smyth, "A fast and effective heuristic for the feedback arc set problem" (1993).
 */
export function upwardArrows(arrows: readonly Arrow[]): Arrow[] {
  const floor = new Map(orderOf(arrows).map((folder, at) => [folder, at]))
  const floorOf = (folder: string) => floor.get(folder) ?? 0
  return arrows.filter(({ from, to }) => floorOf(from) > floorOf(to))
}

/** From the top floor down. */
function orderOf(arrows: readonly Arrow[]): string[] {
  const left = new Set(arrows.flatMap(({ from, to }) => [from, to]).toSorted())
  const top: string[] = []
  const bottom: string[] = []
  while (left.size > 0) {
    const open = arrows.filter(({ from, to }) => left.has(from) && left.has(to))
    const weightOf = (folder: string) => ({
      out: sumOf(open.filter(({ from }) => from === folder)),
      in: sumOf(open.filter(({ to }) => to === folder)),
    })
    const weights = [...left].map((folder) => ({ folder, ...weightOf(folder) }))
    const sink = weights.find((each) => each.out === 0)
    const source = weights.find((each) => each.in === 0)
    const best = weights.toSorted((one, other) => other.out - other.in - (one.out - one.in))[0]
    const next = sink ?? source ?? best
    if (!next) break
    left.delete(next.folder)
    if (next === sink) bottom.unshift(next.folder)
    else top.push(next.folder)
  }
  return [...top, ...bottom]
}

const sumOf = (arrows: readonly Arrow[]): number => arrows.reduce((sum, { imports }) => sum + imports, 0)

/** What loading the file loads, at once or later, with the file itself. */
export function modulesOf(
  path: string,
  sources: readonly (Source & { readonly loads: readonly string[] })[],
): Set<string> {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const loaded = new Set<string>()
  const open = [path]
  for (let next; (next = open.pop()) !== undefined;) {
    const source = byPath.get(next)
    if (!source || loaded.has(next)) continue
    loaded.add(next)
    open.push(...source.loads)
  }
  return loaded
}
