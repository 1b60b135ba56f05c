/** Puts the executable together: Node itself, the chunks of the bundle, and what is not code. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assetFiles } from '../../src/http/assets.ts'
import { NODE_FLAGS } from '../../src/process-settings.ts'
import { LISTENER_COMMAND, offerListener } from '../../src/sandbox/network-listener.ts'
import { PDF_COMMAND, PDF_NODE_OPTIONS } from '../../src/tools/pdf/pdf-reader.ts'
import { PARTS, PDF_ASSET } from './bundle.ts'
import type { ChunkFiles } from './load-chunks.ts'
import { appendChunks, appendedChunks, assetChunks, runChunk } from './load-chunks.ts'

/** Replaces the file atomically: a running server keeps the old one, and a failed build leaves it intact. */
export function publish(assembled: string, executable: string): void {
  // A copy, not a rename: the assembled file was written in one piece, which leaves it in the kernel's cache as huge
  // pages that count 2 MB each as resident. The server would seem to take 33 MB more than it does.
  const copy = join(PARTS, 'copy')
  copyFileSync(assembled, copy)
  chmodSync(copy, 0o755)
  renameSync(copy, executable)
}

/** Runs it as the server does. Throws if it does not recognise what is not a PDF. */
export function checkPdfProgram(executable: string): void {
  const env = { NODE_OPTIONS: PDF_NODE_OPTIONS }
  const { stdout, stderr } = spawnSync(executable, [PDF_COMMAND, '1', '1', '0'], { env, input: 'x', encoding: 'utf8' })
  if (stdout !== '{"refusal":"broken"}') throw new Error(`The program for PDFs does not run: ${stdout}${stderr}`)
}

/** A copy of Node without its symbols, 33 MB smaller; Node as it is where `strip` is missing or would break a signature. */
export function stripped(node: string): string {
  const copy = join(PARTS, 'node')
  if (process.platform !== 'linux') return node
  copyFileSync(node, copy)
  // It runs before the assembly, never after: strip would move the part that Node looks for.
  return spawnSync('strip', [copy]).status === 0 && runs(copy) ? copy : node
}

function runs(node: string): boolean {
  return spawnSync(node, ['-p', '"runs"'], { encoding: 'utf8' }).stdout === 'runs\n'
}

type Parts = {
  readonly node: string
  readonly chunks: readonly ChunkFiles[]
  /** Files by asset. */
  readonly programs: Readonly<Record<string, string>>
  /** An executable without the dashboard shows what the dashboard costs. */
  readonly hasPage?: boolean
}

/** An executable of one platform, made on any. Returns its path among the parts. */
export function assemble(
  { node, chunks, programs, hasPage = true }: Parts,
  isMac = process.platform === 'darwin',
): string {
  const output = join(PARTS, 'agent-server')
  const config = join(PARTS, 'sea.json')
  const main = join(PARTS, 'main.cjs')
  // These programs need nothing of the server, and are not to load it. Each sandbox with a proxy waits for its listener.
  writeFileSync(
    main,
    `const runChunk = ${runChunk.toString()}
if (process.argv[2] === '${LISTENER_COMMAND}') (${offerListener.toString()})(Number(process.argv[3]))
else if (process.argv[2] === '${PDF_COMMAND}') runChunk('${PDF_ASSET}', (${assetChunks.toString()})())
else runChunk('main.js', (${(isMac ? assetChunks : appendedChunks).toString()})())
`,
  )
  const chunkAssets = Object.fromEntries(chunks.map(({ name, source }) => [name, source]))
  const files = Object.entries(assetFiles()).filter(([name]) => hasPage || !name.startsWith('ui/'))
  const assets = { ...Object.fromEntries(files), ...programs, ...(isMac && chunkAssets) }
  const options = { main, executable: node, output, execArgv: NODE_FLAGS, disableExperimentalSEAWarning: true, assets }
  writeFileSync(config, JSON.stringify(options))
  rmSync(output, { force: true })
  const { status, stderr, error } = spawnSync(process.execPath, [`--build-sea=${config}`], { encoding: 'utf8' })
  if (status !== 0 || !existsSync(output))
    throw new Error(`node --build-sea failed with ${error?.message ?? `exit code ${status}`}.\n${stderr}`)
  // A Mach-O file with more after its end cannot be signed.
  if (!isMac) appendChunks(output, chunks)
  return output
}
