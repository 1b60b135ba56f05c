/**
 * The toolchains of the client generators: whether this machine has them, and what is installed for them, pinned, in a
 * cache directory outside the checkout.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { execa } from 'execa'
import { findCommand } from '../provide.mjs'

/** `runtimes`: those that the npm package is tested with. */
export type ToolchainName = 'npm' | 'python' | 'go' | 'java' | 'runtimes'

/** What a command is run with. */
export type Environment = Record<string, string>

/** `missing` names the commands that this machine lacks. */
export type Toolchain = { readonly directory: string; readonly env: Environment } | { readonly missing: string }

type Recipe = {
  readonly commands: readonly string[]
  /** Installs the tools in `directory`; `pins` has the files of `scripts/clients/<name>`. */
  readonly install: (directory: string, pins: string) => Promise<void>
  readonly env?: (directory: string) => Environment
}

const INSTALL_MS = 10 * 60_000
export const OPENAPI_GENERATOR = '7.17.0'
const MAVEN = ['-q', '-B']
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1'

const RECIPES: Record<ToolchainName, Recipe> = {
  npm: fromNpm(),
  runtimes: fromNpm(),
  python: {
    commands: ['python3'],
    async install(directory, pins) {
      await run('python3', ['-m', 'venv', directory], directory)
      const quiet = ['-q', '--disable-pip-version-check', '--no-deps']
      await run(join(directory, 'bin/pip'), ['install', ...quiet, '-r', join(pins, 'requirements.txt')], directory)
    },
    env: (directory) => ({ PATH: pathWith(join(directory, 'bin')) }),
  },
  go: {
    commands: ['go'],
    // The caches of Go itself are enough; this fills them.
    async install(directory, pins) {
      for (const file of ['go.mod', 'go.sum']) writeFileSync(join(directory, file), readFileSync(join(pins, file)))
      await run('go', ['mod', 'download'], directory)
      await run('go', ['tool', 'oapi-codegen', '-version'], directory)
    },
    env: () => ({ GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' }),
  },
  java: {
    commands: ['java', 'javac', 'mvn'],
    async install(directory, pins) {
      const generator = `-Dartifact=org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`
      await run('mvn', [...MAVEN, `${COPY}:copy`, generator, `-DoutputDirectory=${directory}`], directory)
      const jars = `-DoutputDirectory=${join(directory, 'jars')}`
      await run('mvn', [...MAVEN, '-f', join(pins, 'pom.xml'), `${COPY}:copy-dependencies`, jars], directory)
    },
    env: (directory) => ({
      CLASSPATH: [join(directory, 'jars/*'), 'classes'].join(delimiter),
      // Java does not read TMPDIR.
      JDK_JAVA_OPTIONS: `-Djava.io.tmpdir=${tmpdir()}`,
    }),
  },
}

function fromNpm(): Recipe {
  return {
    commands: ['npm', 'npx'],
    env: () => ({ npm_config_loglevel: 'error' }),
    async install(directory, pins) {
      for (const file of ['package.json', 'package-lock.json'])
        writeFileSync(join(directory, file), readFileSync(join(pins, file)))
      await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], directory)
    },
  }
}

/** Installs what is not in the cache yet. Throws when an installation fails. `pins`: a folder that has only the pinned versions. */
export async function provideToolchain(
  name: ToolchainName,
  pins = join(import.meta.dirname, name),
): Promise<Toolchain> {
  const { commands, install, env } = RECIPES[name]
  const missing = commands.filter((command) => findCommand([command]) === undefined)
  if (missing.length > 0) return { missing: missing.join(', ') }
  const directory = join(cacheDirectory(), `${name}-${hashOf(pins)}`)
  const mark = join(directory, '.complete')
  if (!existsSync(mark)) {
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory, { recursive: true })
    await install(directory, pins)
    writeFileSync(mark, '')
  }
  return { directory, env: { PATH: pathWith(), ...env?.(directory) } }
}

const cacheDirectory = () =>
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'agent-server', 'check-clients')

/** The Node of this project comes before that of the system. */
const pathWith = (...first: string[]) =>
  [...first, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)

/** New pins, or another machine, are another installation. */
function hashOf(pins: string): string {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${OPENAPI_GENERATOR}`)
  for (const file of readdirSync(pins).toSorted()) hash.update(readFileSync(join(pins, file)))
  return hash.digest('hex').slice(0, 12)
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  await execa(command, args, { cwd, timeout: INSTALL_MS, stdin: 'ignore', env: { PATH: pathWith() } })
}
