/** The steps from the sources to a single executable: one bundled file, Node itself, and what is not code. */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { rolldown } from 'rolldown'
import { assetFiles } from '../src/http/assets.ts'
import { NODE_FLAGS } from '../src/process-settings.ts'
import { LISTENER_COMMAND, offerListener } from '../src/sandbox/network-listener.ts'
import { PDF_COMMAND, PDF_NODE_OPTIONS } from '../src/tools/pdf/pdf-reader.ts'
import { appendServer, asFunction, loadAsset, loadServer, SERVER_ASSET } from './load-server.ts'

const ROOT = join(import.meta.dirname, '..')
export const DIST = join(ROOT, 'dist')

const PDF_ASSET = 'pdf-program.js'

/** Parts that are deleted when the executable is done. */
export const PARTS = join(DIST, 'parts')

export function makeParts(): void {
  rmSync(PARTS, { recursive: true, force: true })
  mkdirSync(PARTS, { recursive: true })
}

/** Replaces the file atomically: a running server keeps the old one, and a failed build leaves it intact. */
export function publish(assembled: string, executable: string): void {
  // A copy, not a rename: the assembled file was written in one piece, which leaves it in the kernel's cache as huge
  // pages that count 2 MB each as resident. The server would seem to take 33 MB more than it does.
  const copy = join(PARTS, 'copy')
  copyFileSync(assembled, copy)
  chmodSync(copy, 0o755)
  renameSync(copy, executable)
}

/**
 * One file, since `import()` of another file fails in an executable. What the sources load by `import()` stays lazy:
 * its modules are wrapped and evaluated on first use.
 */
export async function bundle(): Promise<string> {
  const server = join(PARTS, 'server.js')
  writeFileSync(server, inAscii(asFunction(withoutFacades(await bundleOf('src/main.ts')))))
  return server
}

/**
 * The program for PDFs is a separate bundle and asset, which the server never reads: its start and its memory stay
 * the same.
 */
export async function bundlePdfProgram(): Promise<string> {
  const program = join(PARTS, PDF_ASSET)
  writeFileSync(program, inAscii(asFunction(await bundleOf('src/tools/pdf/pdf-program.mjs'))))
  return program
}

/** Runs it as the server does. Throws if it does not recognise what is not a PDF. */
export function checkPdfProgram(executable: string): void {
  const env = { NODE_OPTIONS: PDF_NODE_OPTIONS.join(' ') }
  const { stdout, stderr } = spawnSync(executable, [PDF_COMMAND, '1', '1', '0'], { env, input: 'x', encoding: 'utf8' })
  if (stdout !== '{"refusal":"broken"}') throw new Error(`The program for PDFs does not run: ${stdout}${stderr}`)
}

/** Returns the code of one module that contains everything it imports, except Node's own modules. */
async function bundleOf(source: string): Promise<string> {
  const input = join(ROOT, source)
  const file = join(PARTS, 'bundle.mjs')
  const bundler = await rolldown({
    input,
    platform: 'node',
    // A package that is missing would otherwise become an import that fails when the server starts.
    onLog: (level, log, fallback) => (log.code === 'UNRESOLVED_IMPORT' ? fallback('error', log) : fallback(level, log)),
  })
  // Minified: 10 MB less resident memory. Names are kept for stack traces.
  await bundler.write({ file, format: 'esm', codeSplitting: false, minify: true, keepNames: true, comments: false })
  await bundler.close()
  return readFileSync(file, 'utf8')
}

/** The code cache, made by a server that has started and answered. Its data directory is among the parts. */
export async function compile(server: string): Promise<string> {
  const cache = join(PARTS, 'server.cache')
  const home = join(PARTS, 'home')
  const child = fork(join(import.meta.dirname, 'code-cache.ts'), [server, cache], {
    execArgv: [...NODE_FLAGS],
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      OPENHANDS_MASTER_KEY: randomBytes(32).toString('hex'),
      OPENHANDS_DATA_DIR: join(home, 'data'),
      OPENHANDS_SERVER_HOST: '127.0.0.1',
      OPENHANDS_SERVER_PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  for await (const line of createInterface(child.stdout!)) {
    const url = /listening at (http:[^"]+)/.exec(line)?.[1]
    if (url !== undefined) await fetch(`${url}/alive`)
    if (line.includes('"msg":"ready"')) child.send('write')
  }
  await ended
  if (!existsSync(cache)) throw new Error('The server did not start, so there is no code cache.')
  if (!isAccepted(server, cache)) throw new Error('V8 rejects the code cache: it was made under other flags.')
  return cache
}

function isAccepted(server: string, cache: string): boolean {
  const check = `const [source, cachedData] = process.argv.slice(1).map((file) => fs.readFileSync(file))
    process.exitCode = new vm.Script(source.toString('latin1'), { cachedData }).cachedDataRejected ? 1 : 0`
  return spawnSync(process.execPath, [...NODE_FLAGS, '-e', check, server, cache]).status === 0
}

/**
 * Takes Node's own modules without `import`, which asks each for all it exports: `node:http` loads its lazy parts at that,
 * a fetch among them, and the start takes 15 ms longer.
 */
function withoutFacades(module: string): string {
  const code = module.replace(/^#![^\n]*\n/, '')
  const head = /^(?:import[^;'"]*from\s*["'][^"']+["'];?\s*)+/.exec(code)?.[0] ?? ''
  if (head === '' || /^import\b/.test(code.slice(head.length)))
    throw new Error('The bundle begins in a way that is new.')
  const one = /import([^;'"]*)from\s*["']([^"']+)["'];?\s*/g
  return (
    head.replaceAll(one, (_, clause: string, name: string) => takeBuiltin(clause.trim(), name)) +
    code.slice(head.length)
  )
}

/** `a, { b as c }` or `a, * as d`; what they name is the same object either way. */
function takeBuiltin(clause: string, name: string): string {
  if (!isBuiltin(name)) throw new Error(`The bundle imports ${name}, which is not a module of Node.`)
  const module = `process.getBuiltinModule(${JSON.stringify(name)})`
  const [, whole, named] = /^([\w$]+)?(?:\s*,?\s*)(\{[^}]*\}|\*\s*as\s+[\w$]+)?$/.exec(clause) ?? []
  const bindings = [whole, named?.startsWith('*') ? named.replace(/^\*\s*as\s+/, '') : undefined]
  const picked = named?.startsWith('{') ? named.replaceAll(/\s+as\s+/g, ': ') : undefined
  const names = [...bindings, picked].filter((each) => each !== undefined)
  if (names.length === 0) throw new Error(`The bundle imports ${name} in a way that is new: ${clause}`)
  return names.map((each) => `const ${each}=${module};\n`).join('')
}

/** One character beyond it makes V8 keep the whole text with two bytes for each. */
function inAscii(code: string): string {
  if (/\\[^\0-\x7f]/.test(code)) throw new Error('The bundle escapes a character that is not ASCII.')
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A copy of Node without its symbols, 33 MB smaller; Node as it is where `strip` is missing or would break a signature. */
export function stripped(node: string): string {
  const copy = join(PARTS, 'node')
  if (process.platform !== 'linux') return node
  copyFileSync(node, copy)
  // Before the assembly, never after: strip would move the part that Node looks for.
  return spawnSync('strip', [copy]).status === 0 && runs(copy) ? copy : node
}

function runs(node: string): boolean {
  return spawnSync(node, ['-p', '"runs"'], { encoding: 'utf8' }).stdout === 'runs\n'
}

/** `cache` is undefined for another platform: V8 takes a code cache only where it was made. */
type Parts = {
  readonly node: string
  readonly server: string
  readonly pdfProgram: string
  readonly cache: string | undefined
}

/** An executable of one platform, made on any. Returns its path among the parts. */
export function assemble({ node, server, pdfProgram, cache }: Parts, isMac = process.platform === 'darwin'): string {
  const output = join(PARTS, 'agent-server')
  const config = join(PARTS, 'sea.json')
  const main = join(PARTS, 'main.cjs')
  // These programs need nothing of the server, and are not to load it. Each sandbox with a proxy waits for its listener.
  writeFileSync(
    main,
    `if (process.argv[2] === '${LISTENER_COMMAND}') (${offerListener.toString()})(Number(process.argv[3]))
else if (process.argv[2] === '${PDF_COMMAND}') (${loadAsset.toString()})('${PDF_ASSET}')
else (${(isMac ? loadAsset : loadServer).toString()})('${SERVER_ASSET}')
`,
  )
  const assets = { ...assetFiles(), [PDF_ASSET]: pdfProgram, ...(isMac && { [SERVER_ASSET]: server }) }
  const options = { main, executable: node, output, execArgv: NODE_FLAGS, disableExperimentalSEAWarning: true, assets }
  writeFileSync(config, JSON.stringify(options))
  rmSync(output, { force: true })
  const { status, stderr, error } = spawnSync(process.execPath, [`--build-sea=${config}`], { encoding: 'utf8' })
  if (status !== 0 || !existsSync(output))
    throw new Error(`node --build-sea failed with ${error?.message ?? `exit code ${status}`}.\n${stderr}`)
  // A Mach-O file with more after its end cannot be signed.
  if (!isMac) appendServer(output, server, cache)
  return output
}
