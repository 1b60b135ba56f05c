/** The directories of an agent, with which rules compare paths. */
import type { Bases } from './rules/path-pattern.ts'

export type AgentDirectories = {
  /** The real path of the workdir. */
  readonly workdir: string
  /** All directories of the agent. */
  readonly roots: readonly string[]
  /** Relative paths of rules that allow something start there. */
  readonly bases: Bases
  /** The bases of rules that deny or ask, which hold in all directories of the agent. */
  readonly strictBases: Bases
}

type GivenDirectories = {
  readonly workdir: string
  readonly additionalDirectories?: readonly string[] | undefined
  readonly homes: readonly string[]
}

/** `realPath` returns undefined for a path of which it is not certain where it leads. */
export function findDirectories(
  { workdir: given, additionalDirectories: more = [], homes }: GivenDirectories,
  realPath: (path: string) => string | undefined,
): AgentDirectories {
  const workdir = realPath(given) ?? given
  const workdirs = [...new Set([given, workdir])]
  const bases = { workdirs, homes: [...new Set(homes.flatMap((home) => [home, realPath(home) ?? home]))] }
  // One that has become a link is a name for another place.
  const roots = [...workdirs, ...more.filter((each) => realPath(each) === each)]
  const strictBases = more.length > 0 ? { ...bases, workdirs: [...new Set([...workdirs, ...more])] } : bases
  return { workdir, roots, bases, strictBases }
}
