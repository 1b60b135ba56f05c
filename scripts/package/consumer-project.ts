/** An empty project that installs the npm package: whether programs compile and run there. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { mapBounded } from '../../src/lib/map-bounded.ts'
import { makePdf } from '../../test/support/pdf.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'

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

/** What the programs print. */
const OUTPUTS = {
  'client-program': ['connection_failed invalid_signature'],
  'sdk-program': [
    'It is 42.',
    'true',
    'true',
    '{"ok":true}',
    '4',
    'renamed',
    '5',
    'invalid_request',
    'true',
    '200 200 200 200',
  ],
}
type Program = keyof typeof OUTPUTS

const REPLIES = [
  {
    when: 'multiply',
    turns: [{ calls: [{ name: 'Multiply', arguments: { a: 6, b: 7 } }] }, { text: 'It is 42.' }],
  },
  {
    when: 'shell',
    turns: [{ calls: [{ name: 'Bash', arguments: { command: 'echo 6 times 7' } }] }, { text: 'Done.' }],
  },
  {
    when: 'document',
    turns: [{ calls: [{ name: 'Read', arguments: { file_path: 'answer.pdf' } }] }, { text: 'Done.' }],
  },
  { turns: [{ text: '{"ok": true}' }] },
]

/** The settings of strict projects. The declarations of the package and of its dependencies are checked, too. */
const STRICT = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }

const NODE = { lib: ['es2024', 'esnext.array'], types: ['node'] }
const BROWSER = { lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] }
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }
const ALL: readonly Program[] = ['client-program', 'sdk-program']

type Compilation = {
  readonly compiler: 'typescript' | 'typescript-7'
  readonly options: object
  readonly programs: readonly Program[]
}

const COMPILATIONS: Readonly<Record<string, Compilation>> = {
  'nodenext in Node': { compiler: 'typescript', options: { module: 'nodenext', ...NODE }, programs: ALL },
  'bundler in a browser': {
    compiler: 'typescript',
    options: { ...BUNDLER, ...BROWSER },
    programs: ['client-program'],
  },
  'bundler in Node with TypeScript 7': { compiler: 'typescript-7', options: { ...BUNDLER, ...NODE }, programs: ALL },
}

/** Returns what does not work. */
export async function tryInProject(trial: Trial): Promise<string[]> {
  const { work, archive, say } = trial
  writeFileSync(join(work, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  for (const program of ALL) copyFileSync(join(import.meta.dirname, `${program}.ts`), join(work, `${program}.ts`))
  const quiet = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await execa('npm', ['install', ...quiet, archive], { cwd: work, timeout: STEP_MS })
  say('the package was installed')
  const compiled = await mapBounded(Object.entries(COMPILATIONS), CONCURRENCY, async ([name, compilation]) => {
    const fault = await compile(trial, name, compilation)
    say(`${name}: ${fault === undefined ? 'compiles' : 'FAILED'}`)
    return fault
  })
  return [...compiled, ...(await runAll(trial))].filter((fault) => fault !== undefined)
}

async function compile(
  { work, runtimes }: Trial,
  name: string,
  { compiler, options, programs }: Compilation,
): Promise<string | undefined> {
  const project = join(work, `tsconfig.${name.replaceAll(' ', '-')}.json`)
  const typeRoots = [join(runtimes, 'node_modules/@types')]
  const compilerOptions = { target: 'es2022', outDir: 'out', typeRoots, ...STRICT, ...options }
  writeFileSync(project, JSON.stringify({ compilerOptions, files: programs.map((program) => `${program}.ts`) }))
  const tsc = join(runtimes, 'node_modules', compiler, 'bin/tsc')
  const { failed, all } = await execa(process.execPath, [tsc, '-p', project], {
    cwd: work,
    all: true,
    reject: false,
    timeout: STEP_MS,
  })
  return failed ? `The programs do not compile with ${name}:\n${all}` : undefined
}

async function runAll(trial: Trial): Promise<(string | undefined)[]> {
  const model = await startScriptedModel({ replies: REPLIES })
  const persistDir = join(trial.work, 'data')
  mkdirSync(persistDir)
  writeFileSync(join(trial.work, 'out', 'answer.pdf'), makePdf({ pages: ['The answer is 42.'] }))
  try {
    return await Promise.all(ALL.map((program) => run(trial, program, [model.baseUrl, persistDir])))
  } finally {
    await model.close()
  }
}

async function run(
  { work, runtimes, say }: Trial,
  program: Program,
  args: readonly string[],
): Promise<string | undefined> {
  const node = join(runtimes, 'node_modules/.bin/node')
  const { failed, all } = await execa(node, [join('out', `${program}.js`), ...args], {
    cwd: work,
    all: true,
    reject: false,
    timeout: STEP_MS,
  })
  // The output is exactly this: a warning of Node would be on that of each program.
  if (failed || all !== OUTPUTS[program].join('\n')) return `${program} does not run with the oldest Node:\n${all}`
  say(`${program} runs with the oldest Node`)
  return undefined
}
