/** An empty project that installs the npm package: whether a program compiles and runs there. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { mapBounded } from '../../src/lib/map-bounded.ts'

export type Trial = {
  readonly archive: string
  /** An empty directory. */
  readonly work: string
  /** Has the oldest supported Node, and versions of TypeScript. */
  readonly runtimes: string
  readonly say: (text: string) => void
}

const STEP_MS = 5 * 60_000

/** Cores of the machines of CI. */
const CONCURRENCY = 2

/** What `program.ts` prints. */
const OUTPUT = 'connection_failed invalid_signature connection_failed'

/** The settings of strict projects. The declarations of the package and of its dependencies are checked, too. */
const STRICT = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }

const NODE = { lib: ['es2024'], types: ['node'] }
const BROWSER = { lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] }
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }

const COMPILATIONS = {
  'nodenext in Node': { compiler: 'typescript', options: { module: 'nodenext', ...NODE } },
  'bundler in a browser': { compiler: 'typescript', options: { ...BUNDLER, ...BROWSER } },
  'nodenext in Node with TypeScript 7': { compiler: 'typescript-7', options: { module: 'nodenext', ...NODE } },
  'bundler in Node with TypeScript 7': { compiler: 'typescript-7', options: { ...BUNDLER, ...NODE } },
}

/** Returns what does not work. */
export async function tryInProject(trial: Trial): Promise<string[]> {
  const { work, archive, say } = trial
  writeFileSync(join(work, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  copyFileSync(join(import.meta.dirname, 'program.ts'), join(work, 'program.ts'))
  const quiet = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await execa('npm', ['install', ...quiet, archive], { cwd: work, timeout: STEP_MS })
  say('the package was installed')
  const compiled = await mapBounded(Object.entries(COMPILATIONS), CONCURRENCY, async ([name, compilation]) => {
    const fault = await compile(trial, name, compilation)
    say(`${name}: ${fault === undefined ? 'compiles' : 'FAILED'}`)
    return fault
  })
  return [...compiled, await run(trial)].filter((fault) => fault !== undefined)
}

type Compilation = (typeof COMPILATIONS)[keyof typeof COMPILATIONS]

async function compile(
  { work, runtimes }: Trial,
  name: string,
  { compiler, options }: Compilation,
): Promise<string | undefined> {
  const project = join(work, `tsconfig.${name.replaceAll(' ', '-')}.json`)
  const typeRoots = [join(runtimes, 'node_modules/@types')]
  const compilerOptions = { target: 'es2022', outDir: 'out', typeRoots, ...STRICT, ...options }
  writeFileSync(project, JSON.stringify({ compilerOptions, files: ['program.ts'] }))
  const tsc = join(runtimes, 'node_modules', compiler, 'bin/tsc')
  const { failed, all } = await execa(process.execPath, [tsc, '-p', project], {
    cwd: work,
    all: true,
    reject: false,
    timeout: STEP_MS,
  })
  return failed ? `The program does not compile with ${name}:\n${all}` : undefined
}

async function run({ work, runtimes, say }: Trial): Promise<string | undefined> {
  const { stdout, all } = await execa(join(runtimes, 'node_modules/.bin/node'), [join('out', 'program.js')], {
    cwd: work,
    all: true,
    reject: false,
    timeout: STEP_MS,
  })
  if (stdout !== OUTPUT) return `The program does not run with the oldest Node: ${all}`
  say('the program runs with the oldest Node')
  return undefined
}
