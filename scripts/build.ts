/** Makes `dist/agent-server`, the single executable for this machine. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  assemble,
  bundle,
  bundlePdfProgram,
  checkPdfProgram,
  compile,
  DIST,
  makeParts,
  PARTS,
  publish,
  stripped,
} from './executable.ts'

try {
  await build()
} catch (error) {
  process.stderr.write(`dist/agent-server was not made. ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function build(): Promise<void> {
  makeParts()
  const server = await bundle()
  const pdfProgram = await bundlePdfProgram()
  const executable = join(DIST, 'agent-server')
  publish(assemble({ node: stripped(process.execPath), server, pdfProgram, cache: await compile(server) }), executable)
  checkPdfProgram(executable)
  rmSync(PARTS, { recursive: true })
  const megabytes = (statSync(executable).size / 1e6).toFixed(0)
  process.stdout.write(`dist/agent-server: ${megabytes} MB, Node ${process.version}\n`)
}
