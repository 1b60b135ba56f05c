/** Finds where a written path leads in the file system. The only file that follows links for rules. */
import { normalize } from 'node:path'
import type { AgentDirectories } from './agent-directories.ts'
import { findDirectories } from './agent-directories.ts'
import type { Disk } from './disk.ts'
import type { Reach } from './held-files.ts'
import { mayExist, mayHold } from './held-files.ts'
import { Effort } from './rules/comparison.ts'
import type { Symbols } from './rules/globs.ts'
import { STAR } from './rules/globs.ts'
import type { PathParts, PathPattern } from './rules/path-pattern.ts'
import { partsOf } from './rules/path-pattern.ts'
import { placesOf } from './shell/directories.ts'
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf } from './shell/shell-word.ts'
import { restOf, startsAnywhere, textOf } from './word-parts.ts'

export type PlacesOptions = {
  readonly workdir: string
  /** The agent works there, too. */
  readonly additionalDirectories?: readonly string[] | undefined
  /** What `~` may stand for: the home of the shell, and that of the server. */
  readonly homes: readonly string[]
  /** Follows links as the kernel does, also of a path that does not exist in whole; undefined when that fails. */
  readonly realPath: (path: string) => string | undefined
  readonly isDirectory: (path: string) => boolean
  /** Returns true if a link is among what is in the directory; also if that is not known. */
  readonly holdsLinks: (directory: string) => boolean
  /** Returns why git may run a program in a directory, as the end of a sentence that begins with "git". */
  readonly programOfGit: (directory: string) => string | undefined
  /** The directories in which the shell looks for programs; null: not known. */
  readonly path?: string | null | undefined
  /** Absent: whatever a rule is about may be below each directory. */
  readonly disk?: Disk
}

const MAX_PATH_CHARS = 4096

/** Components of one path, and of all paths that are looked up: the kernel follows each of them. */
const MAX_COMPONENTS = 100
const MAX_FOLLOWED = 4000

/** Directories whose entries are read. */
const MAX_LISTED = 10

/** What one argument costs: it is joined with each directory that it may start at. */
const STEPS_OF_A_PLACE = 20

const ANYWHERE: PathParts = [undefined]

/** Files that programs run or take commands from, besides the sources of the project. Compared without case. */
const PROTECTED = new Set(
  `.git .hg .svn .ssh .gnupg .husky .vscode .idea .devcontainer .gitconfig .gitmodules .bashrc .bash_profile .bash_login
  .bash_logout .bash_aliases .profile .zshrc .zprofile .zshenv .npmrc .yarnrc .yarnrc.yml .envrc .netrc .ripgreprc
  .mcp.json .claude .openhands .config head`.split(/\s+/),
)

/** Serves one decision: what it has looked up is kept. */
export class Places {
  /** What is left of comparing for this decision. */
  readonly effort = new Effort()
  /** The directories at which relative paths of tools start. */
  readonly start: readonly string[]
  readonly #options: PlacesOptions
  #foundDirectories: AgentDirectories | undefined
  #git: { readonly program: string | undefined } | undefined
  readonly #linked = new Map<string, boolean>()
  #followed = 0
  readonly #words = new WeakMap<readonly string[], readonly ShellWord[]>()
  readonly #lookedUp = new Map<string, string | undefined>()
  readonly #directories = new Map<string, boolean>()
  readonly #existing = new WeakMap<PathPattern, boolean>()
  /** The same for all rules. */
  readonly #parts = new WeakMap<
    ShellWord,
    { readonly cwds: readonly string[] | undefined; readonly parts: readonly PathParts[] }
  >()

  constructor(options: PlacesOptions) {
    this.#options = options
    this.start = [options.workdir]
  }

  /** They are looked up when a path is first compared: many commands name none. */
  get directories(): AgentDirectories {
    return (this.#foundDirectories ??= findDirectories(this.#options, (path) => this.#look(path)))
  }

  /** Returns the words of the paths that a tool has named. */
  wordsOf(paths: readonly string[]): readonly ShellWord[] {
    let words = this.#words.get(paths)
    if (!words) this.#words.set(paths, (words = paths.map(literalWord)))
    return words
  }

  /** The path as it is written and as the file system finds it; what is not known is `undefined` in it. */
  partsOf(word: ShellWord, cwds: readonly string[] | undefined): readonly PathParts[] {
    const keptParts = this.#parts.get(word)
    if (keptParts && keptParts.cwds === cwds) return keptParts.parts
    const parts = this.#readParts(word, cwds)
    this.#parts.set(word, { cwds, parts })
    return parts
  }

  #readParts(word: ShellWord, cwds: readonly string[] | undefined): readonly PathParts[] {
    const places = this.#placesOf(word, cwds)
    if (!places || places.some(({ directory }) => directory.length > MAX_PATH_CHARS)) return [ANYWHERE]
    return places.flatMap((place): PathParts[] => {
      const rest = place.rest
      const directory = normalize(place.directory)
      const paths = new Set([directory])
      // `link/../x`: for the kernel next to the target of the link, and for what normalizes paths next to the link.
      for (const path of new Set([place.directory, directory])) {
        const real = this.#real(path)
        // A name that `*` stands for may be a link.
        const isKnown = real !== undefined && (rest.length === 0 || (rest.length === 1 && !this.#holdsLinks(real)))
        if (!isKnown) return [[...partsOf(directory), ...rest], ANYWHERE]
        paths.add(real)
      }
      return [...paths].map((path) => [...partsOf(path), ...rest])
    })
  }

  /** Returns true if it is certainly one of the directories of the agent, or below. */
  isInside(word: ShellWord, cwds: readonly string[] | undefined): boolean {
    const places = this.#placesOf(word, cwds)
    return places !== undefined && places.every(({ directory }) => this.#isInside(directory))
  }

  /** Returns true if a `*` at its start may stand for a name that a program takes as an option. */
  mayBeOption(word: ShellWord, cwds: readonly string[] | undefined): boolean {
    const { disk } = this.#options
    const isGlob = startOf(word) === '' && literalOf(word) === undefined
    return isGlob && disk !== undefined && (cwds === undefined || cwds.some((cwd) => disk.holdsOptions(cwd)))
  }

  /** Returns why a command of this name may be a program in the workdir, to which the search path leads, as a clause. */
  whyOwn(name: string, cwds: readonly string[] | undefined): string | undefined {
    const { disk, path } = this.#options
    if (!disk || path === undefined || name.includes('/')) return undefined
    if (path === null) return 'and it is not known where the shell looks for it'
    const places = path
      .split(':')
      .flatMap((each) => (each.startsWith('/') ? each : (cwds ?? this.start).map((cwd) => `${cwd}/${each}`)))
    const isOwn = places.some((place) => this.#mayBeInside(place) && disk.exists(`${place}/${name}`))
    return isOwn ? 'which is a program in the workdir' : undefined
  }

  mayBeDirectory(word: ShellWord, cwds: readonly string[] | undefined): boolean {
    const places = this.#placesOf(word, cwds)
    return !places || places.some(({ directory, rest }) => rest.length > 0 || this.#isDirectory(directory))
  }

  /** Returns true if a command that reaches what is below the word reaches a file that the rule is about. */
  mayHold(
    pattern: PathPattern,
    word: ShellWord,
    cwds: readonly string[] | undefined,
    depthAndChange: Pick<Reach, 'depth' | 'mayChange'>,
  ): boolean {
    const { disk } = this.#options
    const places = disk && this.#placesOf(word, cwds)
    if (!disk || !places) return true
    const isDirectory = (path: string) => this.#looksLikeDirectory(path)
    const reach = { disk, isDirectory, bases: this.directories.strictBases, effort: this.effort, ...depthAndChange }
    return places.some(({ directory, rest }) => {
      const real = rest.length === 0 ? this.#real(directory) : undefined
      return real === undefined || mayHold(pattern, real, reach)
    })
  }

  /** The top of each repository that the word is in, unless it is the word itself. */
  topsOf(word: ShellWord, cwds: readonly string[] | undefined): readonly ShellWord[] {
    const { disk } = this.#options
    const places = (disk && this.#placesOf(word, cwds)) ?? []
    return places.flatMap(({ directory, rest }) => {
      const real = rest.length === 0 ? this.#real(directory) : undefined
      const top = real === undefined ? undefined : disk?.topOf(real)
      return top === undefined || top === real ? [] : [literalWord(top)]
    })
  }

  /** Returns true if there may be a file that the rule is about. */
  mayExist(pattern: PathPattern): boolean {
    const { disk } = this.#options
    let foundExisting = this.#existing.get(pattern)
    if (foundExisting === undefined)
      this.#existing.set(
        pattern,
        (foundExisting = !disk || mayExist(pattern, { disk, bases: this.directories.strictBases })),
      )
    return foundExisting
  }

  isDirectoryInside(cwds: readonly string[] | undefined): boolean {
    return cwds !== undefined && cwds.every((cwd) => this.#isInside(cwd))
  }

  /** Returns true if that is where all commands run: in the workdir itself. */
  isWorkdir(cwds: readonly string[] | undefined): boolean {
    return cwds !== undefined && cwds.every((cwd) => this.#real(cwd) === this.directories.workdir)
  }

  /** Returns why git may run a program in the workdir, where it is allowed to read. */
  get programOfGit(): string | undefined {
    // An index is long, and a line may start git many times.
    this.#git ??= { program: this.#options.programOfGit(this.directories.workdir) }
    return this.#git.program
  }

  /** Returns true if an edit of it could make another program run something. */
  isProtected(word: ShellWord, cwds: readonly string[] | undefined): boolean {
    const isListed = (part: Symbols | undefined) =>
      part === undefined || part.includes(STAR) || PROTECTED.has(textOf(part).toLowerCase())
    return this.partsOf(word, cwds).some((parts) => parts.slice(this.#depthOf(parts)).some(isListed))
  }

  /** The number of components of the outermost directory of the agent that has the path; if none has it, of the workdir. */
  #depthOf(parts: PathParts): number {
    const depthIn = (workdirs: readonly string[]) => Math.min(...workdirs.map((each) => partsOf(each).length))
    if (this.directories.roots.length === this.directories.bases.workdirs.length)
      return depthIn(this.directories.bases.workdirs)
    const path = `/${parts.map((part) => (part === undefined ? '\0' : textOf(part))).join('/')}/`
    const holding = this.directories.roots.filter((each) => path.startsWith(`${each}/`))
    return depthIn(holding.length > 0 ? holding : this.directories.bases.workdirs)
  }

  /** The path up to its first hole, and what comes after it; undefined when it may be anywhere. */
  #placesOf(
    word: ShellWord,
    cwds: readonly string[] | undefined,
  ): { readonly directory: string; readonly rest: PathParts }[] | undefined {
    if (!this.effort.spend(STEPS_OF_A_PLACE * (1 + (cwds?.length ?? 0)))) return undefined
    const { homes } = this.#options
    const path = literalOf(word)
    const start = path ?? startOf(word)
    const isRelative = !start.startsWith('/') && !word.hasTilde
    if (isRelative && (cwds === undefined || (path === undefined && start === '' && startsAnywhere(word))))
      return undefined
    if (path !== undefined)
      return placesOf(path, word.hasTilde, cwds ?? [], homes).map((directory) => ({ directory, rest: [] }))
    const rest = restOf(word)
    if (!rest) return undefined
    const knownStart = start.slice(0, start.lastIndexOf('/') + 1)
    return placesOf(knownStart, word.hasTilde, cwds ?? [], homes).map((directory) => ({ directory, rest }))
  }

  /** Looks also without the links before each `..`: `cd link/../x` enters the `x` that is next to the link. */
  #isInside(place: string): boolean {
    const writtenPlace = normalize(place).replace(/(?<=.)\/$/, '')
    const isBelow = (path: string | undefined) =>
      path !== undefined && this.directories.roots.some((workdir) => path === workdir || path.startsWith(`${workdir}/`))
    const hasParent = place.includes('..')
    return isBelow(writtenPlace) && isBelow(this.#real(place)) && (!hasParent || isBelow(this.#real(writtenPlace)))
  }

  #mayBeInside(place: string): boolean {
    const real = this.#real(place)
    return real === undefined || this.directories.roots.some((workdir) => `${real}/`.startsWith(`${workdir}/`))
  }

  #isDirectory(path: string): boolean {
    return !this.#takesPath(path) || this.#looksLikeDirectory(path)
  }

  #looksLikeDirectory(path: string): boolean {
    let isDirectory = this.#directories.get(path)
    if (isDirectory === undefined) this.#directories.set(path, (isDirectory = this.#options.isDirectory(path)))
    return isDirectory
  }

  #holdsLinks(directory: string): boolean {
    let isLinked = this.#linked.get(directory)
    if (isLinked === undefined && this.#linked.size >= MAX_LISTED) return true
    if (isLinked === undefined) this.#linked.set(directory, (isLinked = this.#options.holdsLinks(directory)))
    return isLinked
  }

  #real(path: string): string | undefined {
    return this.#lookedUp.has(path) || this.#takesPath(path) ? this.#look(path) : undefined
  }

  #look(path: string): string | undefined {
    if (!this.#lookedUp.has(path)) this.#lookedUp.set(path, this.#options.realPath(path))
    return this.#lookedUp.get(path)
  }

  /** Returns false for a path that must not be looked up: the kernel takes no longer one, or there were too many. */
  #takesPath(path: string): boolean {
    if (path.length > MAX_PATH_CHARS) return false
    const components = path.split('/').length
    if (components > MAX_COMPONENTS || this.#followed + components > MAX_FOLLOWED) return false
    this.#followed += components
    return true
  }
}
