/** Who may import whom, and how files are named: what docs and review would else have to repeat. */
import { basename, dirname } from 'node:path/posix'
import { arrowsBetween, mutualPairs } from './folder-arrows.ts'
import type { SourceFile } from './imports.ts'

/** A folder or a file of `src/` may import from the lines above its own, and from itself. */
export const LEVELS = [
  ['contract', 'lib'],
  ['telemetry', 'security', 'files', 'events', 'llm', 'client'],
  ['sandbox', 'storage', 'policy', 'ui'],
  ['access', 'state'],
  ['idempotency', 'shell', 'project'],
  ['limits', 'webhooks', 'cluster'],
  ['tools', 'network', 'hooks'],
  ['mcp', 'workspace'],
  ['agent'],
  ['conversations'],
  ['replays'],
  ['http'],
  ['protocols'],
  ['config', 'process-settings.ts'],
  ['wiring'],
  ['app.ts'],
  ['sdk'],
  ['cli'],
  ['main.ts', 'index.ts'],
]

/** The folder that each package lives in, or folders, or the file; a package that is not here has no home yet. `*`: any. */
const HOMES: Readonly<Record<string, string | readonly string[]>> = {
  zod: '*',
  fastify: ['http', 'protocols'],
  '@fastify/multipart': 'http',
  '@fastify/sse': 'http',
  '@fastify/cors': 'http',
  '@fastify/helmet': 'http',
  '@fastify/rate-limit': 'http',
  ws: 'http',
  'fastify-type-provider-zod': 'http',
  '@anthropic-ai/sdk': 'llm',
  ajv: 'agent',
  openai: ['llm', 'protocols'],
  htmlparser2: 'tools',
  unpdf: 'tools',
  undici: ['llm', 'security', 'sdk', 'cluster'],
  '@modelcontextprotocol/client': 'mcp',
  '@agentclientprotocol/sdk': ['cli', 'protocols'],
  '@modelcontextprotocol/server': ['cli', 'protocols'],
  'ipaddr.js': 'security',
  unbash: 'policy',
  yaml: 'project',
  pg: 'storage',
  pino: 'telemetry',
  'pino-pretty': 'telemetry',
  '@earendil-works/pi-tui': 'cli',
  preact: 'ui',
  'preact/compat': 'ui',
  'preact/hooks': 'ui',
  '@preact/signals': 'ui',
  '@tanstack/virtual-core': 'ui',
  marked: 'ui',
  'highlight.js': 'ui',
  diff: ['tools', 'ui'],
  'node:sqlite': 'storage',
  // Each process outside of a sandbox is started there, with an environment of the server alone.
  'node:child_process': 'lib/start-process.ts',
  execa: 'lib/start-process.ts',
  'node:cluster': [],
  // A thread has the environment of the server, unless it is given another one.
  'node:worker_threads': ['agent', 'storage'],
  // The end of the server, with an environment of its own.
  'process.execve': 'cli/terminal/exit.ts',
}

/** What the fold of the state and the decisions about it may know: no tool, no process, no file and no model. */
const MAY_BE_IN_THE_CORE = /^(contract|lib|policy\/rules)\//

/** Names that say nothing of what is inside, so that anything ends up there. */
const EMPTY_NAMES = new Set([
  'types.ts',
  'util.ts',
  'utils.ts',
  'helper.ts',
  'helpers.ts',
  'common.ts',
  'shared.ts',
  'misc.ts',
])

/** A sentence for each breach; none when all is well. */
export function findBreaches(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map((file) => file.path))
  return [
    ...files.flatMap((file) => [
      ...breachesOf(file),
      ...file.imports.flatMap((to) => breachOfImport(file.path, to, known)),
      ...file.loads.flatMap((to) => breachOfLoad(file.path, to, known)),
    ]),
    ...cyclesIn(files),
    ...mutualPairs(arrowsBetween(files)).map(
      ([{ from, to }]) => `${from} and ${to} import each other; move what one needs of the other`,
    ),
  ]
}

function breachesOf({ path, readsEnvironment, isBarrel }: SourceFile): string[] {
  return [
    levelOf(path) === -1 && `${path} is on no level; add ${unitOf(path)} to LEVELS`,
    readsEnvironment &&
      !['config', 'process-settings.ts'].includes(unitOf(path)) &&
      `${path} reads the environment; only config does`,
    (isBarrel || basename(path) === 'index.ts') &&
      path !== 'index.ts' &&
      `${path} is a barrel; import from the file that has the thing`,
    EMPTY_NAMES.has(basename(path)) && `${path} has a name that says nothing`,
  ].filter((breach) => breach !== false)
}

function breachOfImport(from: string, to: string, known: ReadonlySet<string>): string[] {
  if (to.endsWith('.json')) return []
  if (!/\.tsx?$/.test(to)) return breachOfPackage(from, to)
  if (!known.has(to)) return [`${from} imports ${to}, which is not in src`]
  if (to.startsWith('storage/files/') && unitOf(from) !== 'storage' && from !== 'wiring/services.ts')
    return [
      `${from} imports ${to}; use storage/storage.ts, for only wiring/services.ts chooses what a storage is made of`,
    ]
  if (isOfOtherProtocol(from, to))
    return [`${from} imports ${to}; what protocols have in common is in protocols/shared and protocols/items`]
  if (unitOf(from) === unitOf(to)) return []
  if (unitOf(from) === 'ui' && !['client', 'contract'].includes(unitOf(to)))
    return [`${from} imports ${to}; the dashboard is a client of the API, and knows client and contract only`]
  if (unitOf(from) === 'state' && !MAY_BE_IN_THE_CORE.test(to))
    return [`${from} imports ${to}; the core imports contract, lib and the rules of the policy only`]
  if (levelOf(to) < levelOf(from)) return []
  return [`${from} imports ${to}, which is ${levelOf(to) === levelOf(from) ? 'beside' : 'above'} it`]
}

const COMMON_TO_PROTOCOLS = new Set(['protocols/shared', 'protocols/items'])

function isOfOtherProtocol(from: string, to: string): boolean {
  const [own, other] = [dirname(from), dirname(to)]
  const areBothProtocols = own.startsWith('protocols/') && other.startsWith('protocols/')
  return areBothProtocols && own !== other && !COMMON_TO_PROTOCOLS.has(other)
}

/** A folder is made of its subfolders: these take types of it, and know nothing of what it makes of them. */
function breachOfLoad(from: string, to: string, known: ReadonlySet<string>): string[] {
  const isAround = known.has(to) && dirname(to) !== '.' && dirname(from).startsWith(`${dirname(to)}/`)
  return isAround
    ? [
        `${from} loads ${to}, of a folder around its own, of which it may import types only; move that file, or the value, into a subfolder`,
      ]
    : []
}

function breachOfPackage(from: string, name: string): string[] {
  if (unitOf(from) === 'client' && name !== 'zod')
    return [`${from} imports ${name}; the client works in browsers, and imports only types`]
  if (unitOf(from) === 'contract' && name !== 'zod') return [`${from} imports ${name}; contract imports zod only`]
  const home = HOMES[name] ?? HOMES[packageOf(name)] ?? (name.startsWith('node:') ? '*' : undefined)
  if (home === undefined) return [`${from} imports ${name}, which has no home; add it to HOMES`]
  return home === '*' || [home].flat().some((place) => place === unitOf(from) || place === from)
    ? []
    : [`${from} imports ${name}, which lives in ${[home].flat().join(' and ') || 'no file of src'}`]
}

/** Without the path in it. */
const packageOf = (name: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name

/** The folder, or the file itself at the top of `src/`. */
const unitOf = (path: string): string => path.split('/')[0]!

const levelOf = (path: string): number => LEVELS.findIndex((level) => level.includes(unitOf(path)))

/** Returns each cycle once, beginning with its first file. */
export function cyclesIn(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const done = new Set<string>()
  const cycles: string[] = []

  function walk(path: string, way: readonly string[]): void {
    if (way.includes(path)) {
      cycles.push(`${[...way.slice(way.indexOf(path)), path].join(' -> ')} is a circle`)
      return
    }
    if (done.has(path)) return
    for (const to of byPath.get(path)?.imports ?? []) walk(to, [...way, path])
    done.add(path)
  }

  for (const file of files) walk(file.path, [])
  return cycles
}
