/**
 * Makes `dist/agent-server`, the single executable for this machine. `--chunks` makes `dist/agent-server.chunks` as well, for users who
 * can run the executable and not read it; `--without-page=PATH` a second executable without the dashboard, to measure what that costs.
 */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { assemble, checkPdfProgram, publish, stripped } from './executable/assemble.ts'
import { bundle, bundlePrograms, DIST, makeParts, PARTS } from './executable/bundle.ts'
import { compile } from './executable/code-caches.ts'
import { appendChunks } from './executable/load-chunks.ts'
import { provideDashboard } from './ui/build-page.ts'

const WITHOUT_PAGE = '--without-page='

try {
  await build()
} catch (error) {
  process.stderr.write(`dist/agent-server was not made. ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function build(): Promise<void> {
  makeParts()
  await provideDashboard()
  const chunks = await compile(await bundle())
  const programs = await bundlePrograms()
  const executable = join(DIST, 'agent-server')
  const node = stripped(process.execPath)
  publish(assemble({ node, chunks, programs }), executable)
  checkPdfProgram(executable)
  rmSync(`${executable}.chunks`, { force: true })
  if (process.argv.includes('--chunks')) appendChunks(`${executable}.chunks`, chunks)
  const bare = process.argv.find((argument) => argument.startsWith(WITHOUT_PAGE))?.slice(WITHOUT_PAGE.length)
  if (bare !== undefined) publish(assemble({ node, chunks, programs, hasPage: false }), bare)
  rmSync(PARTS, { recursive: true })
  const megabytes = (statSync(executable).size / 1e6).toFixed(0)
  process.stdout.write(`dist/agent-server: ${megabytes} MB, Node ${process.version}\n`)
}
