/** What the npm package contains and how it is imported: its entries, and its package.json. */
import manifest from '../../package.json' with { type: 'json' }

export type Entry = {
  /** The name of its module, without `.js`. */
  readonly name: string
  /** What is written after the name of the package to import it. */
  readonly path: '.' | './client'
  readonly source: string
  /** The path in the folder of the declarations. */
  readonly types: string
  /** Whether it also runs in browsers, and so imports no modules of Node. */
  readonly isForBrowsers: boolean
}

export const ENTRIES: readonly Entry[] = [
  { name: 'index', path: '.', source: 'src/index.ts', types: 'index.d.ts', isForBrowsers: false },
  {
    name: 'client',
    path: './client',
    source: 'src/client/client.ts',
    types: 'client/client.d.ts',
    isForBrowsers: true,
  },
]

/** The oldest Node that the package supports. */
const OLDEST_NODE = '22.21.0'

/** Packages that are not bundled. The declarations refer to zod, and schemas of users must be of the same copy. */
export const DEPENDENCIES = ['zod'] as const

export function makeManifest() {
  const { name, version, license } = manifest
  return {
    name,
    version,
    description:
      'AI agents for programs: query() and run() with a server in the process, and the typed client of agent-server',
    license,
    keywords: ['ai', 'agent', 'sdk', 'client', 'sse', 'typescript'],
    type: 'module',
    sideEffects: false,
    engines: { node: `>=${OLDEST_NODE}` },
    exports: {
      ...Object.fromEntries(
        ENTRIES.map((entry) => [entry.path, { types: `./types/${entry.types}`, default: `./${entry.name}.js` }]),
      ),
      './package.json': './package.json',
    },
    // Tools that know no exports read it.
    main: './index.js',
    types: './types/index.d.ts',
    files: ['*.js', 'lib', 'catalog', 'openapi', 'swagger-ui', 'types', 'ui', 'CHANGELOG.md', 'LICENSES.txt'],
    dependencies: Object.fromEntries(DEPENDENCIES.map((each) => [each, `^${manifest.dependencies[each]}`])),
  }
}
