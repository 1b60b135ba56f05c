/** The only file that says which configuration of a repository certainly makes git run no program. */

/** Keys that run no program. A `*` stands for the name in quotes: `[remote "origin"]`. */
const HARMLESS = new Set(
  `advice.* author.email author.name blame.coloring blame.date   branch.autosetupmerge branch.autosetuprebase branch.sort
  branch.*.description branch.*.gh-merge-base branch.*.github-pr-owner-number branch.*.merge branch.*.pushremote
  branch.*.rebase branch.*.remote branch.*.vscode-merge-base
  color.ui color.branch color.diff color.status color.interactive column.ui commit.gpgsign commit.verbose
  committer.email committer.name
  core.abbrev core.autocrlf core.bare core.bigfilethreshold core.checkstat core.commentchar core.commitgraph
  core.compression core.deltabasecachelimit core.eol core.filemode core.fscache core.hidedotfiles core.ignorecase
  core.logallrefupdates core.longpaths core.loosecompression core.multipackindex core.notesref core.packedgitlimit
  core.precomposeunicode core.preloadindex core.protecthfs core.protectntfs core.quotepath core.repositoryformatversion
  core.safecrlf core.sharedrepository core.sparsecheckout core.sparsecheckoutcone core.symlinks core.trustctime
  core.untrackedcache core.usereplacerefs core.warnambiguousrefs core.whitespace
  diff.algorithm diff.colormoved diff.colormovedws diff.context diff.indentheuristic diff.interhunkcontext
  diff.mnemonicprefix diff.noprefix diff.relative diff.renamelimit diff.renames diff.statgraphwidth diff.wserrorhighlight
  extensions.compatobjectformat extensions.noop extensions.preciousobjects
  extensions.refstorage extensions.relativeworktrees extensions.worktreeconfig
  feature.experimental feature.manyfiles fetch.fsckobjects fetch.parallel fetch.prune fetch.prunetags
  fetch.writecommitgraph gc.auto gc.autodetach gc.autopacklimit gc.pruneexpire gc.reflogexpire
  gc.worktreepruneexpire gpg.format gui.* help.autocorrect http.extraheader http.postbuffer http.sslverify
  http.*.extraheader http.*.sslverify i18n.commitencoding i18n.logoutputencoding index.threads index.version
  init.defaultbranch lfs.repositoryformatversion lfs.*.access log.abbrevcommit log.date log.decorate log.follow
  log.showroot maintenance.auto maintenance.strategy merge.conflictstyle merge.ff merge.log merge.renames
  pack.threads pack.usebitmaps pull.ff pull.rebase push.autosetupremote push.default push.followtags
  rebase.autosquash rebase.autostash rebase.updaterefs receive.denycurrentbranch receive.denynonfastforwards
  remote.pushdefault remote.*.fetch remote.*.gh-resolved remote.*.mirror remote.*.prune remote.*.push remote.*.pushurl
  remote.*.skipfetchall remote.*.tagopt remote.*.url rerere.autoupdate rerere.enabled
  status.branch status.relativepaths status.short status.showstash status.showuntrackedfiles
  submodule.active submodule.*.active submodule.*.branch submodule.*.ignore submodule.*.shallow submodule.*.url
  tag.gpgsign tag.sort transfer.fsckobjects user.email user.name user.signingkey user.useconfigonly`.split(/\s+/),
)

/** Harmless with these values only. */
const VALUES: Readonly<Record<string, (value: string) => boolean>> = {
  'core.fsmonitor': (value) => /^(false|no|off|0)$/i.test(value),
  // An index of SHA-256 has another form, which is not read here.
  'extensions.objectformat': (value) => /^sha1$/i.test(value),
  // `%G?` runs the program that checks signatures. What has no `%` may be the name of a format that is set elsewhere.
  'format.pretty': (value) => PRETTY_NAMES.test(value) || (value.includes('%') && !/%[-+ ]?G/.test(value)),
}

const PRETTY_NAMES = /^(oneline|short|medium|full|fuller|reference|email|raw)$/

/** What of a configuration `checkConfig` cannot decide by itself. */
export type OpenSettings = {
  readonly hooks: readonly string[]
  readonly worktrees: readonly string[]
  /** Git shows what it cannot use of these files. */
  readonly files: readonly string[]
}

/** Returns the reason why the text may make git run a program, as the end of "a configuration that". */
export function checkConfig(text: string): string | OpenSettings {
  const hooks: string[] = []
  const worktrees: string[] = []
  const files: string[] = []
  const settings = readConfig(text)
  if (!settings) return 'cannot be read with certainty'
  for (const { name, value } of settings) {
    if (name === 'core.hookspath') hooks.push(value)
    else if (name === 'core.worktree') worktrees.push(value)
    else if (name === 'blame.ignorerevsfile') files.push(value)
    else if (!isHarmless(name, value)) return `sets ${name.slice(0, MAX_SHOWN)}, which may run a program`
  }
  return { hooks, worktrees, files }
}

const MAX_SHOWN = 100

/** `key` as a command has it: `remote.origin.url`. */
export function isHarmlessKey(key: string): boolean {
  const [section = '', ...rest] = key.toLowerCase().split('.')
  const name = rest.at(-1) ?? ''
  return isHarmless(rest.length > 1 ? `${section}.*.${name}` : `${section}.${name}`, '')
}

function isHarmless(name: string, value: string): boolean {
  if (Object.hasOwn(VALUES, name)) return VALUES[name]?.(value) ?? false
  const [section = '', ...rest] = name.split('.')
  return HARMLESS.has(name) || (rest.length === 1 && HARMLESS.has(`${section}.*`))
}

type Setting = { readonly name: string; readonly value: string }

const SECTION = /^\[([A-Za-z0-9-]+)([ \t.][^\]"\\]*(?:"(?:[^"\\\]]|\\["\\]){0,1000}")?)?\](.*)$/

/** Reads what git itself writes; undefined for all else, which git may take in another way. */
function readConfig(givenText: string): readonly Setting[] | undefined {
  const text = givenText.replaceAll('\r\n', '\n')
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (/[\0-\x08\x0b-\x1f\x7f]|^\xef/.test(text)) return undefined
  const settings: Setting[] = []
  let section: string | undefined
  for (const line of text.split('\n').map(trimLine)) {
    if (isComment(line)) continue
    const header = SECTION.exec(line)
    if (header) {
      const [, name = '', subsection, rest = ''] = header
      if (!isComment(trimLine(rest))) return undefined
      section = `${name.toLowerCase()}${subsection === undefined ? '' : '.*'}`
      continue
    }
    const equals = line.indexOf('=')
    const name = trimLine(equals < 0 ? line : line.slice(0, equals))
    const value = equals < 0 ? '' : trimLine(line.slice(equals + 1))
    // A backslash at the end continues the line.
    if (section === undefined || !/^[A-Za-z][A-Za-z0-9-]*$/.test(name) || value.endsWith('\\')) return undefined
    settings.push({ name: `${section}.${name.toLowerCase()}`, value: unquote(value) })
  }
  return settings
}

const isComment = (line: string): boolean => line === '' || /^[#;]/.test(line)

/** Removes the blanks of git only: others belong to a value. */
function trimLine(line: string): string {
  let [start, end] = [0, line.length]
  while (isBlank(line[start])) start += 1
  while (isBlank(line[end - 1])) end -= 1
  return line.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** A value with anything unusual stays as it is written: no harmless value has that. */
const unquote = (value: string): string => (/^"[^"\\]*"$/.test(value) ? value.slice(1, -1) : value)
